"""What a driver leaves behind for the night watch."""

from __future__ import annotations

import os
import stat

from ingest_platform.drivers.diagnostics import Diagnostics


def test_heap_dump_of_this_run_is_the_error_and_an_older_one_is_not(tmp_path):
    diagnostics = Diagnostics(tmp_path)
    diagnostics.prepare()
    dump = diagnostics.heap_dumps / "java_pid17.hprof"
    dump.touch()
    os.utime(dump, (1000, 1000))
    assert diagnostics.out_of_memory(1001, "stream clicks") is None
    error = diagnostics.out_of_memory(999, "stream clicks")
    assert error is not None
    assert error.retryable
    assert str(dump) in error.what
    assert "spark.driver_memory" in error.remedy


def test_one_heap_dump_is_kept_in_a_folder_of_the_owners(tmp_path):
    """A dump is as large as the heap, and holds secrets."""
    diagnostics = Diagnostics(tmp_path)
    diagnostics.prepare()
    assert stat.S_IMODE(diagnostics.heap_dumps.stat().st_mode) == 0o700
    for number in range(3):
        dump = diagnostics.heap_dumps / f"java_pid{number}.hprof"
        dump.touch()
        os.utime(dump, (1000 + number, 1000 + number))
    diagnostics.prepare()
    assert [d.name for d in diagnostics.heap_dumps.iterdir()] == ["java_pid2.hprof"]
