"""Where the faults happen."""

from __future__ import annotations

import pytest

from ingest_platform_tests.conftest import S3Bucket


@pytest.fixture(params=["s3", "local"])
def bucket(request: pytest.FixtureRequest) -> S3Bucket | None:
    """Where the table is; None for a local path."""
    return request.getfixturevalue("s3") if request.param == "s3" else None
