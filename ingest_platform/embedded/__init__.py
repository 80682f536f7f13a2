"""Local Kafka and S3 for `dev`, demo and tests: real servers on loopback, data in one folder."""
