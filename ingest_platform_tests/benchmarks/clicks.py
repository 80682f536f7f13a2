"""A click stream as a web shop's tracker sends it: JSON, about 230 bytes a record, seeded.

The columns are those of `ingest_platform/defs/clicks`. Sessions are spread over the topic's
partitions, so the partitions are nearly but not exactly equal, and clicks of one session stay in
order.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaError, Message, Producer

SCHEMA: Final = (
    "event_id STRING, event_time TIMESTAMP, user_id BIGINT, session_id STRING, event_type STRING, "
    "page STRING, referrer STRING, product_id BIGINT, price DOUBLE, quantity INT, country STRING, "
    "device STRING"
)
PARTITIONS: Final = 25

# A stream of this rate, in records per second, made the event times of a backlog.
BACKLOG_RATE: Final = 4000

_CHUNK: Final = 10_000
_QUEUED: Final = 300_000
_TICK_SECONDS: Final = 0.05

_TYPES = ("page_view", "search", "product_view", "add_to_cart", "purchase")
_TYPE_SHARES = (0.34, 0.10, 0.45, 0.08, 0.03)
_ABOUT_A_PRODUCT = 2  # the types from here on
_PAGES = ("/", "/sale", "/account", "/help/shipping", "/category/shoes", "/category/audio")
_REFERRERS = ("https://www.google.com/", "https://news.example.com/", "https://www.bing.com/")
_COUNTRIES = ("DE", "FR", "US", "GB", "NL", "PL", "SE", "IT")
_DEVICES = ("mobile", "desktop", "tablet")


@dataclass(frozen=True)
class ClickStream:
    """Makes records.

    Attributes:
        bad_share: Share of records, 0 to 1, that no schema accepts: truncated, not JSON, not UTF-8,
            or of a wrong type.
        seed: The same seed and the same calls make the same records.
    """

    bad_share: float = 0.0
    seed: int = 7

    def messages(self, first: int, times_ms: np.ndarray) -> list[dict[str, Any]]:
        """Records number `first` and following, one for each time, as `produce_batch` takes them.

        Args:
            first: Number of the first record.
            times_ms: Event times in milliseconds since 1970, int64.
        """
        count = len(times_ms)
        rng = np.random.default_rng([self.seed, first])
        sessions = rng.integers(0, 40_000, count)
        values = self._values(rng, sessions, times_ms)
        for index in np.flatnonzero(rng.random(count) < self.bad_share).tolist():
            values[index] = _spoilt(values[index], kind=index % 4)
        return [
            {"value": value, "key": b"%08x" % session, "partition": session % PARTITIONS}
            for value, session in zip(values, sessions.tolist(), strict=True)
        ]

    def _values(
        self, rng: np.random.Generator, sessions: np.ndarray, times_ms: np.ndarray
    ) -> list[bytes]:
        count = len(times_ms)
        late = rng.exponential(300, count).astype("int64")  # trackers send a little afterwards
        times = np.datetime_as_string((times_ms - late).astype("datetime64[ms]"))
        kinds = rng.choice(len(_TYPES), count, p=_TYPE_SHARES)
        products = (rng.zipf(1.3, count) % 50_000).tolist()  # few products get most clicks
        columns = (
            rng.integers(0, 1 << 62, count).tolist(),
            times.tolist(),
            (sessions * 7919 % 10_000_019).tolist(),
            sessions.tolist(),
            kinds.tolist(),
            _pages(rng, kinds, products),
            _referrers(rng, count),
            _bought(rng, kinds, products),
            rng.choice(_COUNTRIES, count).tolist(),
            rng.choice(_DEVICES, count, p=(0.6, 0.33, 0.07)).tolist(),
        )
        return [
            (
                f'{{"event_id":"{event:016x}","event_time":"{at}Z","user_id":{user},'
                f'"session_id":"{session:08x}","event_type":"{_TYPES[kind]}","page":"{page}"'
                f'{referrer}{product},"country":"{country}","device":"{device}"}}'
            ).encode()
            for event, at, user, session, kind, page, referrer, product, country, device in zip(
                *columns, strict=True
            )
        ]


def fill(
    bootstrap_servers: str,
    topic: str,
    stream: ClickStream,
    count: int,
    *,
    now: float,
    told: Callable[[int], None] = lambda _: None,
) -> None:
    """Produce a backlog of `count` records whose event times end at `now`.

    Args:
        bootstrap_servers: Of the broker.
        topic: Has PARTITIONS partitions.
        stream: Makes the records.
        count: Records.
        now: Seconds since 1970.
        told: Is called with the number of records that were produced so far.

    Raises:
        RuntimeError: The broker did not take a record.
    """
    with _Sender(bootstrap_servers, topic) as sender:
        for first in range(0, count, _CHUNK):
            numbers = np.arange(first, min(count, first + _CHUNK))
            times = (now * 1000 - (count - numbers) * 1000 / BACKLOG_RATE).astype("int64")
            sender.send(stream.messages(first, times))
            told(int(numbers[-1]) + 1)


class Trickle(threading.Thread):
    """Produces at a steady rate, event times being now, until closed."""

    def __init__(
        self, bootstrap_servers: str, topic: str, stream: ClickStream, *, rate: int, first: int
    ) -> None:
        """`rate` is in records per second; `first` numbers the first record."""
        super().__init__(name="trickle", daemon=True)
        self._sender = _Sender(bootstrap_servers, topic)
        self._stream, self._rate, self._first = stream, rate, first
        self._done = threading.Event()
        self.error: BaseException | None = None

    def run(self) -> None:
        """Send what is due, look again in 50 ms."""
        try:
            self._send_until_done()
        except BaseException as error:  # noqa: BLE001  (for the thread that closes this one)
            self.error = error

    def close(self) -> None:
        """Stop, and wait until the broker has everything.

        Raises:
            RuntimeError: Something could not be produced.
        """
        self._done.set()
        self.join(timeout=30)
        self._sender.flush()
        if self.error is not None:
            raise RuntimeError("the trickle of records broke off") from self.error

    def __enter__(self) -> Trickle:
        """Started; leaving the block closes it."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def _send_until_done(self) -> None:
        started, sent = time.time(), 0
        while not self._done.wait(_TICK_SECONDS):
            now = time.time()
            due = int((now - started) * self._rate) - sent
            if due:
                times = np.full(due, int(now * 1000), dtype="int64")
                self._sender.send(self._stream.messages(self._first + sent, times))
                sent += due


class _Sender:
    """A producer that fails loudly and never overfills its queue."""

    def __init__(self, bootstrap_servers: str, topic: str) -> None:
        self._topic = topic
        self._failed: list[str] = []
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap_servers,
                "compression.type": "lz4",
                "linger.ms": 10,
                "batch.size": 256 << 10,
                "queue.buffering.max.messages": 2 * _QUEUED,
                "delivery.report.only.error": True,
                "log_level": 0,
            }
        )

    def send(self, messages: list[dict[str, Any]]) -> None:
        while len(self._producer) > _QUEUED:
            self._producer.poll(0.02)
        taken = self._producer.produce_batch(self._topic, messages, on_delivery=self._on_error)
        self._producer.poll(0)
        if taken != len(messages) or self._failed:
            raise RuntimeError(f"Kafka took {taken} of {len(messages)}: {self._failed[:1]}")

    def flush(self) -> None:
        left = self._producer.flush(120)
        if left or self._failed:
            raise RuntimeError(f"Kafka did not take {left} records: {self._failed[:1]}")

    def _on_error(self, error: KafkaError | None, _message: Message) -> None:
        if error is not None:
            self._failed.append(str(error))

    def __enter__(self) -> _Sender:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.flush()


def _pages(rng: np.random.Generator, kinds: np.ndarray, products: list[int]) -> list[str]:
    plain = rng.integers(0, len(_PAGES), len(kinds)).tolist()
    return [
        f"/product/{product}" if kind >= _ABOUT_A_PRODUCT else _PAGES[page]
        for kind, product, page in zip(kinds.tolist(), products, plain, strict=True)
    ]


def _referrers(rng: np.random.Generator, count: int) -> list[str]:
    """Half of the visits are direct: the field is missing then, as trackers do it."""
    texts = [f',"referrer":"{url}"' for url in _REFERRERS] + [""] * len(_REFERRERS)
    return [texts[i] for i in rng.integers(0, len(texts), count).tolist()]


def _bought(rng: np.random.Generator, kinds: np.ndarray, products: list[int]) -> list[str]:
    cents = rng.integers(199, 49_999, len(kinds)).tolist()
    quantities = rng.integers(1, 4, len(kinds)).tolist()
    return [
        f',"product_id":{product},"price":{cent / 100},"quantity":{quantity}'
        if kind >= _ABOUT_A_PRODUCT
        else ""
        for kind, product, cent, quantity in zip(
            kinds.tolist(), products, cents, quantities, strict=True
        )
    ]


def _spoilt(value: bytes, *, kind: int) -> bytes:
    if kind == 0:
        return value[: len(value) // 2]
    if kind == 1:
        return b"<html><body>502 Bad Gateway</body></html>"
    if kind == 2:
        return value.replace(b'"page":"/', b'"page":"/\xff\xfe')
    return value.replace(b'"user_id":', b'"user_id":"unknown","user":')
