"""`python -m ingest_platform.cli`."""

from ingest_platform.cli import main

if __name__ == "__main__":
    main()
