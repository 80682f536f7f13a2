"""Which partitions are due: Delta's own rule for auto compaction, on a snapshot's files. Pure.

Delta counts the small files of a partition that passed through its own process; here they are
counted in the table, so files that another driver wrote or has compacted are seen as well. One of
Delta's rules is left out: to compact every partition at the first write of a process, however few
files it has. After a restart that would rewrite what had just been compacted.

Source: `AutoCompactUtils.choosePartitionsBasedOnMinNumSmallFiles` and
`OptimizeExecutor.filterCandidateFileList` of Delta 4.4.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

PARTITION_PREFIX: Final = "partition."

Partition = Mapping[str, Any]

_PREFIX: Final = "spark.databricks.delta.autoCompact."


@dataclass(frozen=True)
class Trigger:
    """Limits, by the names and defaults of Delta's settings `spark.databricks.delta.autoCompact.*`.

    Attributes:
        min_files: Small files that make a partition due.
        min_bytes: A file below this size is small.
        max_partitions: At most so many in one OPTIMIZE; those with the most small files first.
    """

    min_files: int = 50
    min_bytes: int = 64 * 1024 * 1024
    max_partitions: int = 128

    @classmethod
    def from_conf(cls, setting: Callable[[str, str], str]) -> Trigger:
        """Read the session's settings; `setting` takes a name and a default."""
        max_bytes = int(setting(f"{_PREFIX}maxFileSize", str(2 * cls.min_bytes)))
        return cls(
            min_files=int(setting(f"{_PREFIX}minNumFiles", str(cls.min_files))),
            min_bytes=int(setting(f"{_PREFIX}minFileSize", str(max_bytes // 2))),
            max_partitions=int(
                setting(f"{_PREFIX}maxNumModifiedPartitions", str(cls.max_partitions))
            ),
        )


def partitions_due(files: pa.Table, trigger: Trigger) -> list[Partition]:
    """The partitions to compact; of a table without partitions, `{}` stands for all of it.

    Args:
        files: Of the snapshot, one row each: `size_bytes`, and `partition.NAME` by column.
        trigger: Limits.
    """
    names = [n for n in files.column_names if n.startswith(PARTITION_PREFIX)]
    small = files.filter(pc.field("size_bytes") < trigger.min_bytes)
    # One file alone has nothing to be merged with.
    least = max(2, trigger.min_files)
    if not names:
        return [{}] if small.num_rows >= least else []
    counted = small.group_by(names).aggregate([("size_bytes", "count")])
    due = counted.filter(pc.field("size_bytes_count") >= least)
    due = due.sort_by([("size_bytes_count", "descending")]).slice(0, trigger.max_partitions)
    return [
        {name.removeprefix(PARTITION_PREFIX): row[name] for name in names}
        for row in due.to_pylist()
    ]
