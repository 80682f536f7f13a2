"""Which partitions to compact, and which to leave alone and why: from the log, without I/O.

Delta packs all files below a size into bins, partition by partition, sorted by size. The plan does
the same arithmetic beforehand, so that nothing is started that would change nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from ingest_platform.model.data_file import DataFile, Partition
from ingest_platform.spec import CompactionSpec

# While a partition is written, files above this part of the limit wait for it to settle: else each
# run would rewrite what the run before has made.
_HOT_SHARE = 8

_PARTITIONS_OF_A_BATCH = 100  # the statement names each of them


class Reason(StrEnum):
    """Why a partition is left alone."""

    COMPACT = "has too few small files"
    BEING_WRITTEN = "is still being written"
    BUDGET = "waits for a later run: this one reads max_bytes at most"


@dataclass(frozen=True)
class Skipped:
    """A partition that this run leaves alone."""

    partition: Partition
    reason: Reason
    small_files: int


@dataclass(frozen=True)
class Work:
    """One partition to compact.

    Attributes:
        partition: Where.
        below: Only files of fewer bytes are read.
        files: Number of files that are read.
        bytes: Their sum.
        saves: By how many files the table gets smaller, as far as sizes tell.
        settled: Nothing was added for a while; only then is it worth clustering.
    """

    partition: Partition
    below: int
    files: int
    bytes: int
    saves: int
    settled: bool


@dataclass(frozen=True)
class Batch:
    """What one OPTIMIZE does: partitions that share the limit, so that one statement can say it."""

    work: tuple[Work, ...]
    cluster: bool = False

    @property
    def below(self) -> int:
        """Only files of fewer bytes are read."""
        return self.work[0].below

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """Which, in the order of the plan."""
        return tuple(work.partition for work in self.work)

    @property
    def files(self) -> int:
        """Files that are read."""
        return sum(work.files for work in self.work)

    @property
    def bytes(self) -> int:
        """Bytes that are read."""
        return sum(work.bytes for work in self.work)


@dataclass(frozen=True)
class CompactionPlan:
    """What a run does, batch by batch, and what it leaves alone."""

    batches: tuple[Batch, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def work(self) -> tuple[Work, ...]:
        """All partitions of all batches."""
        return tuple(work for batch in self.batches for work in batch.work)

    def reasons(self) -> dict[str, int]:
        """Number of partitions by reason for leaving them alone."""
        found: dict[str, int] = {}
        for skip in self.skipped:
            found[skip.reason.value] = found.get(skip.reason.value, 0) + 1
        return found


def plan_compaction(
    files: Iterable[DataFile], rules: CompactionSpec, now: datetime
) -> CompactionPlan:
    """Choose partitions, most files saved first, within the bytes that one run may read.

    Args:
        files: The table's live files.
        rules: Sizes and times of the spec.
        now: With time zone; compared with the files' own times.
    """
    settled_ms = (now - rules.settle).timestamp() * 1000
    wanted: list[Work] = []
    skipped: list[Skipped] = []
    held = _by_partition(files)
    for partition, (sizes, newest_ms) in held.items():
        settled = newest_ms <= settled_ms
        work = _work(partition, sizes, rules, settled=settled)
        if work:
            wanted.append(work)
        else:
            skipped.append(_left_alone(partition, sizes, rules, settled=settled))
    chosen: list[Work] = []
    left = rules.max_bytes
    for work in sorted(wanted, key=lambda w: -w.saves):
        fit = work
        if work.bytes > left and not chosen:
            fit = _cut(work, held[work.partition][0], rules)
        if fit.bytes > left and chosen:
            skipped.append(Skipped(work.partition, Reason.BUDGET, work.files))
            continue
        chosen.append(fit)
        left -= fit.bytes
    return CompactionPlan(tuple(_batches(chosen, rules)), tuple(skipped))


def packed(sizes: Sequence[int], target: int) -> tuple[int, int, int]:
    """What packing does to files of these sizes, ascending: files read, files made, bytes read.

    As Delta's `OptimizeExecutor.groupFilesIntoBins`: a bin is closed when the next file would
    exceed the target, and a bin of one file is left as it is.
    """
    bins: list[list[int]] = [[]]
    total = 0
    for size in sizes:
        if total + size > target and bins[-1]:
            bins.append([])
            total = 0
        bins[-1].append(size)
        total += size
    rewritten = [sizes for sizes in bins if len(sizes) > 1]
    return sum(map(len, rewritten)), len(rewritten), sum(map(sum, rewritten))


def small_below(rules: CompactionSpec) -> int:
    """Files of at least so many bytes are left as they are.

    Half of the target: all bins but the last of a partition are filled at least that far, so that
    what packing has made is not packed again.
    """
    return max(2, rules.target_file_size // 2)


def _by_partition(files: Iterable[DataFile]) -> dict[Partition, tuple[list[int], int]]:
    """Sizes, ascending, and the time of the newest file, by partition."""
    sizes: dict[Partition, list[int]] = {}
    newest: dict[Partition, int] = {}
    for file in files:
        sizes.setdefault(file.partition, []).append(file.bytes)
        newest[file.partition] = max(newest.get(file.partition, 0), file.modified_ms)
    return {partition: (sorted(found), newest[partition]) for partition, found in sizes.items()}


def _work(
    partition: Partition, sizes: Sequence[int], rules: CompactionSpec, *, settled: bool
) -> Work | None:
    """What is worth doing in a partition; None if nothing is."""
    limit = _limit(sizes, rules, settled=settled)
    if limit is None:
        return None
    work = _below(partition, sizes, limit, rules, settled=settled)
    if work.saves < rules.min_files:
        return None
    if settled and rules.z_order:  # clustering reads the large files too
        return replace(work, files=len(sizes), bytes=sum(sizes))
    return work


def _limit(sizes: Sequence[int], rules: CompactionSpec, *, settled: bool) -> int | None:
    """Below which size files are packed now; None for a written partition that can wait.

    A partition that is written all the time, as an unpartitioned table is, is packed in two steps:
    many tiny files into middle ones, and middle ones into large ones once these would be full. So
    a byte is rewritten twice or so, however long the partition goes on.
    """
    small = small_below(rules)
    if settled:
        return small
    hot = max(2, small // _HOT_SHARE)
    if sum(size for size in sizes if hot <= size < small) >= 2 * rules.target_file_size:
        return small
    return hot if sum(size < hot for size in sizes) >= rules.hot_files else None


def _below(
    partition: Partition, sizes: Sequence[int], limit: int, rules: CompactionSpec, *, settled: bool
) -> Work:
    taken = [size for size in sizes if size < limit]
    files, made, read = packed(taken, rules.target_file_size)
    return Work(partition, limit, files, read, files - made, settled)


def _cut(work: Work, sizes: Sequence[int], rules: CompactionSpec) -> Work:
    """As much of one partition as a run may read: its smallest files, of which it has most.

    The whole partition if that would not get anywhere, for instance since all sizes are equal: a
    table must not stay as it is for ever because its one partition is large.
    """
    total = 0
    for size in sizes:
        total += size
        if total > rules.max_bytes:
            cut = _below(work.partition, sizes, size, rules, settled=False)
            return cut if cut.saves >= rules.min_files else work
    return work


def _left_alone(
    partition: Partition, sizes: Sequence[int], rules: CompactionSpec, *, settled: bool
) -> Skipped:
    small = sum(size < small_below(rules) for size in sizes)
    busy = not settled and small > rules.min_files
    return Skipped(partition, Reason.BEING_WRITTEN if busy else Reason.COMPACT, small)


def _batches(chosen: Sequence[Work], rules: CompactionSpec) -> Iterator[Batch]:
    """One batch is one commit: of like limits, and of about `commit_bytes`."""
    alike: dict[tuple[int, bool], list[Work]] = {}
    for work in chosen:
        cluster = bool(rules.z_order) and work.settled
        alike.setdefault((work.below, cluster), []).append(work)
    for (_, cluster), works in alike.items():
        batch: list[Work] = []
        for work in works:
            total = sum(w.bytes for w in batch) + work.bytes
            if batch and (total > rules.commit_bytes or len(batch) == _PARTITIONS_OF_A_BATCH):
                yield Batch(tuple(batch), cluster)
                batch = []
            batch.append(work)
        yield Batch(tuple(batch), cluster)
