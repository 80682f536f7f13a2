"""Entry points of the driver processes."""
