"""Contender (c), the floor: one Python process, no Spark, no table format.

confluent-kafka in big batches -> Arrow's JSON reader -> one Parquet file a batch, with the columns
that the platform writes: the data and the record's coordinates. No commit, no exactly once, no
partitions. Records that do not parse are left out and counted.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from confluent_kafka import OFFSET_BEGINNING, Consumer, Message, TopicPartition
from pyarrow import json as arrow_json

COLUMNS = pa.schema(
    [
        ("event_id", pa.string()),
        ("event_time", pa.timestamp("us", tz="UTC")),
        ("user_id", pa.int64()),
        ("session_id", pa.string()),
        ("event_type", pa.string()),
        ("page", pa.string()),
        ("referrer", pa.string()),
        ("product_id", pa.int64()),
        ("price", pa.float64()),
        ("quantity", pa.int32()),
        ("country", pa.string()),
        ("device", pa.string()),
    ]
)
PARSE = arrow_json.ParseOptions(explicit_schema=COLUMNS, unexpected_field_behavior="ignore")
READ = arrow_json.ReadOptions(block_size=4 << 20)

NUMBERS = {"user_id": int, "product_id": int, "price": (int, float), "quantity": int}


def main() -> None:
    """Run until the given number of records was read; one line of progress a file."""
    args = arguments()
    args.folder.mkdir(parents=True)
    consumer = Consumer(
        {
            "bootstrap.servers": args.bootstrap_servers,
            "group.id": "floor",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 10,
        }
    )
    known = consumer.list_topics(args.topic, timeout=10).topics[args.topic].partitions
    consumer.assign([TopicPartition(args.topic, p, OFFSET_BEGINNING) for p in known])
    done, number = 0, 0
    with args.progress.open("w", encoding="utf-8") as progress:
        while done < args.records:
            messages = [m for m in consumer.consume(args.batch, timeout=1.0) if not m.error()]
            if not messages:
                continue
            path = args.folder / f"{number:06d}.parquet"
            table = with_coordinates(messages, args.topic)
            pq.write_table(table, path, compression="snappy")
            done, number = done + len(messages), number + 1
            line = {
                "at": time.time(),
                "records": len(messages),
                "rows": table.num_rows,
                "bytes": path.stat().st_size,
            }
            progress.write(json.dumps(line) + "\n")
            progress.flush()
    consumer.close()


def with_coordinates(messages: list[Message], topic: str) -> pa.Table:
    """The messages that parse, as a table."""
    data, good = parse(messages)
    kept = messages if len(good) == len(messages) else [messages[i] for i in good]
    stamps = pa.array([m.timestamp()[1] for m in kept], pa.int64())
    coordinates = {
        "_kafka_topic": pa.repeat(pa.scalar(topic), len(kept)),
        "_kafka_partition": pa.array([m.partition() for m in kept], pa.int32()),
        "_kafka_offset": pa.array([m.offset() for m in kept], pa.int64()),
        "_kafka_timestamp": stamps.cast(pa.timestamp("ms", tz="UTC")),
    }
    for name, column in coordinates.items():
        data = data.append_column(name, column)
    return data


def parse(messages: list[Message]) -> tuple[pa.Table, Sequence[int]]:
    """The rows, and the indices of the messages that they come from.

    Arrow refuses a block for one bad record, without naming it: those are looked for one by one
    then, which costs about as much as everything else.
    """
    values = [m.value() or b"" for m in messages]
    table = _read(values)
    if table is not None:
        return table, range(len(values))
    good = [i for i, value in enumerate(values) if _fits(value)]
    table = _read([values[i] for i in good])
    if table is None:
        raise ValueError("Arrow refuses records that Python's JSON accepts")
    return table, good


def _fits(value: bytes) -> bool:
    try:
        record = json.loads(value)
    except ValueError:  # also UnicodeDecodeError
        return False
    return isinstance(record, dict) and all(
        isinstance(record[name], kind) for name, kind in NUMBERS.items() if name in record
    )


def _read(values: list[bytes]) -> pa.Table | None:
    try:
        table = arrow_json.read_json(io.BytesIO(b"\n".join(values)), READ, PARSE)
    except pa.ArrowInvalid:
        return None
    return table if table.num_rows == len(values) else None


def arguments() -> argparse.Namespace:
    """What differs between runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bootstrap-servers", required=True)
    parser.add_argument("--topic", required=True)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--progress", type=Path, required=True)
    parser.add_argument("--records", type=int, required=True)
    parser.add_argument("--batch", type=int, default=250_000)
    return parser.parse_args()


if __name__ == "__main__":
    main()
