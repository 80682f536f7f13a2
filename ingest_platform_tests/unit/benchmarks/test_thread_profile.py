"""Which cause a stack of the query's thread is booked under, and what a batch spends on it."""

from __future__ import annotations

import pytest

from ingest_platform_tests.benchmarks.drift_plot import seconds_by_cause
from ingest_platform_tests.benchmarks.thread_profile import cause, query_stacks

DUMP = """\
2026-11-22 07:40:00
Full thread dump OpenJDK 64-Bit Server VM (17.0.15+6-Debian-1 mixed mode, sharing):

"main" #1 prio=5 os_prio=0 cpu=1.00ms elapsed=1.00s tid=0x1 nid=0x1 runnable  [0x1]
   java.lang.Thread.State: RUNNABLE
\tat sun.nio.ch.Net.accept(java.base@17.0.15/Native Method)

"stream execution thread for clicks [id = a, runId = b]" #50 daemon prio=5 waiting  [0x2]
   java.lang.Thread.State: WAITING (parking)
\tat jdk.internal.misc.Unsafe.park(java.base@17.0.15/Native Method)
\t- parking to wait for  <0x00000000eb952200> (a scala.concurrent.impl.CompletionLatch)
\tat org.apache.spark.scheduler.DAGScheduler.runJob(DAGScheduler.scala:1052)
\tat org.apache.spark.sql.delta.files.TransactionalWrite.writeFiles(TransactionalWrite.scala:449)
"""


def test_only_the_querys_thread_is_looked_at() -> None:
    stacks = query_stacks(DUMP)
    assert len(stacks) == 1
    assert stacks[0][0].startswith("at jdk.internal.misc.Unsafe.park")
    assert len(stacks[0]) == 3
    assert cause(stacks[0]) == "writing files"


@pytest.mark.parametrize(
    ("frames", "booked"),
    [
        (["UNIXProcess.wait", "io.delta.storage.HDFSLogStore.listFrom"], "listing the log"),
        (
            ["io.delta.storage.HDFSLogStore.listFrom", "spark.sql.delta.OptimisticTransaction.x"],
            "listing the log",
        ),
        (
            ["spark.sql.execution.QueryExecution.x", "spark.sql.delta.Snapshot.stateDF"],
            "making a snapshot",
        ),
        (["spark.sql.execution.QueryExecution.x", "py4j.Gateway.invoke"], "planning"),
        (["spark.sql.functions$.lit", "py4j.Gateway.invoke"], "Python"),
        (["java.lang.Object.wait"], "other"),
        ([], "other"),
    ],
)
def test_a_stack_is_booked_under_what_it_is_there_for(frames: list[str], booked: str) -> None:
    assert cause(frames) == booked


def test_seconds_are_shares_of_the_median_batch_since_the_look_before() -> None:
    course = {
        "batch": [0, 20, 40, 60],
        "seconds": [1.0, 3.0, 10.0, 30.0],
        "looked": [40, 80],
        "profiles": [{"Python": 0.5, "planning": 0.5}, {"planning": 1.0}],
    }
    found = seconds_by_cause(course)
    assert found == {"planning": [1.0, 20.0], "Python": [1.0, 0.0]}
    assert list(found) == ["Python", "planning"]  # a plot has what grew on top
