"""The light S3 server, as the platform's own readers see it."""

from __future__ import annotations

from pathlib import Path

from ingest_platform.adapters.s3_reads import S3Reads
from ingest_platform.maintain.audit.log_folder import log_folder
from ingest_platform.spec import StorageEnvironment
from ingest_platform_tests.benchmarks.light_s3 import LightS3


def test_a_long_folder_is_listed_over_pages_and_read_in_part(tmp_path: Path) -> None:
    folder = tmp_path / "table" / "_delta_log"
    folder.mkdir(parents=True)
    names = [f"{version:020}.json" for version in range(2_500)]
    for name in names:
        (folder / name).write_text(f"commit {name}")
    (tmp_path / "tablet").write_text("another name with the same beginning")
    with LightS3(tmp_path, "bench") as s3:
        storage = StorageEnvironment.from_env(s3.environment)
        log = log_folder("s3a://bench/table", storage)
        assert [entry.name for entry in log.entries()] == names
        assert log.read(names[7], 6) == b"commit"
        assert log.read(names[-1]) == f"commit {names[-1]}".encode()
        assert log.read("no such") is None
        assert S3Reads(storage, "bench").get("tablet") is not None
