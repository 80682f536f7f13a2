"""Storage that is not fit: real folders, and a real S3 server, some of it behind a proxy."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from ingest_platform.maintain.preflight.findings import Finding, exit_code
from ingest_platform.maintain.preflight.kinds import Kind, Level
from ingest_platform.maintain.preflight.storage import check_storage
from ingest_platform.spec import StreamSpec
from ingest_platform_tests.fault_proxy import FaultProxy
from ingest_platform_tests.unit.maintain.preflight.found import kinds, only, problems, spec_of


def now() -> datetime:
    return datetime.now(UTC)


def of_storage(spec: StreamSpec, environ: Mapping[str, str] | None = None) -> list[Finding]:
    return list(check_storage(spec, environ or {}, now))


def test_a_local_check_leaves_nothing_behind(tmp_path):
    spec = spec_of(table={"path": str(tmp_path / "a" / "clicks")})
    assert problems(of_storage(spec)) == []
    assert list(tmp_path.iterdir()) == []


def test_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / "a").write_text("not a folder")
    spec = spec_of(table={"path": str(tmp_path / "a" / "clicks")})
    found = of_storage(spec)
    assert kinds(found) == {Kind.STORAGE_DENIED}
    assert exit_code(found) == 3
    assert (tmp_path / "a").read_text() == "not a folder"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB."""
    folder = tmp_path / "small"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip("mounting a small file system needs root")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_disk_that_is_nearly_full(small_disk):
    spec = spec_of(table={"path": str(small_disk / "clicks")})
    found = problems(of_storage(spec))
    assert {(f.kind, f.level) for f in found} == {(Kind.DISK_SPACE, Level.WARNING)}
    assert "1 MB left" in found[0].what


def test_a_disk_that_is_full(small_disk):
    fill = f"head -c 2M /dev/zero > {small_disk / 'ballast'}"
    subprocess.run(["sh", "-c", fill], capture_output=True, check=False)
    spec = spec_of(table={"path": str(small_disk / "clicks")})
    found = problems(of_storage(spec))
    assert {(f.kind, f.level) for f in found} == {(Kind.DISK_SPACE, Level.ERROR)}
    assert exit_code(found) == 3


# --- S3 ----------------------------------------------------------------------------------------


@pytest.fixture
def on_s3(s3) -> StreamSpec:
    return spec_of(table={"path": f"s3a://{s3.bucket}/tables/clicks"})


def test_a_sound_bucket(on_s3, s3):
    assert problems(of_storage(on_s3, s3.environment())) == []


def test_a_server_that_ignores_conditional_writes(on_s3, s3):
    """Two writers of one object are both told that they made it, as several servers do."""
    with FaultProxy(s3.endpoint) as proxy:
        proxy.answered_as = {412: 200}
        found = of_storage(on_s3, s3.environment(proxy.endpoint))
    assert kinds(found) == {Kind.CONDITIONAL_WRITES}
    assert exit_code(found) == 3


@pytest.mark.parametrize("method", ["PUT", "GET", "DELETE"])
def test_a_policy_that_lacks_a_right(on_s3, s3, method):
    """One of put, get and list, delete is not allowed."""
    with FaultProxy(s3.endpoint) as proxy:
        proxy.answer(403, method=method, path=r"_ingest_probe|list-type")
        found = of_storage(on_s3, s3.environment(proxy.endpoint))
    assert kinds(found) == {Kind.STORAGE_DENIED}
    assert all("AccessDenied" in finding.what for finding in problems(found))


def test_a_store_that_does_not_answer(on_s3, s3):
    with FaultProxy(s3.endpoint) as proxy:
        proxy.answer(503, path=r".*")
        found = of_storage(on_s3, s3.environment(proxy.endpoint))
    assert kinds(found) == {Kind.STORAGE_UNAVAILABLE}


@pytest.mark.parametrize(("minutes", "level"), [(2, Level.WARNING), (20, Level.ERROR)])
def test_a_clock_that_is_off(on_s3, s3, minutes, level):
    """By the `Date` of the real server's answer."""

    def late() -> datetime:
        return now() - timedelta(minutes=minutes)

    finding = only(check_storage(on_s3, s3.environment(), late), Kind.STORAGE_CLOCK)
    assert finding.level is level
