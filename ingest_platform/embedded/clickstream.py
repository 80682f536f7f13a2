"""Clicks of an imaginary web shop, one Kafka record at a time; a few of them are broken."""

from __future__ import annotations

import json
import random
import uuid
from dataclasses import dataclass
from datetime import datetime
from typing import Any

BAD_RATIO = 0.001
TOMBSTONE_RATIO = 0.00005

_VISITS = 400  # at the same time
_USERS = 200_000
_PRODUCTS = 5_000

_COUNTRIES = {"DE": 30, "US": 25, "FR": 12, "GB": 10, "NL": 8, "ES": 6, "PL": 5, "JP": 3, "BR": 1}
_DEVICES = {"mobile": 61, "desktop": 34, "tablet": 5}
_REFERRERS = {
    None: 45,
    "https://www.google.com/": 35,
    "https://news.example.org/deals": 8,
    "https://mail.example.com/": 7,
    "https://social.example.net/p/4711": 5,
}

# What a visitor does next, with weights; None ends the visit.
_NEXT: dict[str, dict[str | None, int]] = {
    "page_view": {"page_view": 25, "search": 20, "product_view": 40, None: 15},
    "search": {"product_view": 65, "search": 20, None: 15},
    "product_view": {
        "product_view": 45,
        "add_to_cart": 14,
        "page_view": 16,
        "search": 10,
        None: 15,
    },
    "add_to_cart": {"product_view": 45, "checkout": 35, None: 20},
    "checkout": {"purchase": 70, None: 30},
    "purchase": {"page_view": 20, None: 80},
}
_PAGES = ("/", "/sale", "/new", "/about", "/help/returns")
_OF_A_PRODUCT = {"product_view", "add_to_cart", "checkout", "purchase"}
_WITH_QUANTITY = {"add_to_cart", "checkout", "purchase"}


@dataclass(frozen=True)
class ClickRecord:
    """One Kafka record; a tombstone has no value."""

    key: bytes
    value: bytes | None


@dataclass
class _Visit:
    """One visitor's way through the shop."""

    session_id: str
    user_id: int | None
    country: str
    device: str
    referrer: str | None
    event_type: str = "page_view"
    product_id: int = 0


class ClickStream:
    """An endless stream of records; the same `rng` seed gives the same stream.

    Values are UTF-8 JSON objects with the columns of `defs/clicks/defs.yaml`. Keys are session ids,
    so that a visit's events keep their order.
    """

    def __init__(
        self,
        rng: random.Random,
        *,
        bad_ratio: float = BAD_RATIO,
        tombstone_ratio: float = TOMBSTONE_RATIO,
    ) -> None:
        """`bad_ratio` is the share of records that cannot be decoded."""
        self._rng = rng
        self._bad_ratio = bad_ratio
        self._tombstone_ratio = tombstone_ratio
        self._visits = [self._arrive() for _ in range(_VISITS)]

    def record(self, now: datetime) -> ClickRecord:
        """The next record, of an event that happened `now`."""
        slot = self._rng.randrange(_VISITS)
        visit = self._visits[slot]
        event = self._event(visit, now)
        self._go_on(slot)
        key = visit.session_id.encode()
        drawn = self._rng.random()
        if drawn < self._bad_ratio:
            return ClickRecord(key, self._broken(event))
        if drawn < self._bad_ratio + self._tombstone_ratio:
            return ClickRecord(key, None)
        return ClickRecord(key, _json(event))

    def _arrive(self) -> _Visit:
        rng = self._rng
        return _Visit(
            session_id=f"{rng.getrandbits(64):016x}",
            user_id=rng.randrange(_USERS) if rng.random() < 0.6 else None,
            country=_draw(rng, _COUNTRIES),
            device=_draw(rng, _DEVICES),
            referrer=_draw(rng, _REFERRERS),
        )

    def _go_on(self, slot: int) -> None:
        visit = self._visits[slot]
        following = _draw(self._rng, _NEXT[visit.event_type])
        if following is None:
            self._visits[slot] = self._arrive()
            return
        visit.event_type = following
        if following == "product_view":
            # A few products get most of the views, as in every shop.
            visit.product_id = min(_PRODUCTS, int(self._rng.paretovariate(0.7)))

    def _event(self, visit: _Visit, now: datetime) -> dict[str, Any]:
        kind = visit.event_type
        of_product = kind in _OF_A_PRODUCT
        return {
            "event_id": str(uuid.UUID(int=self._rng.getrandbits(128), version=4)),
            "event_time": f"{now:%Y-%m-%dT%H:%M:%S}.{now.microsecond // 1000:03d}Z",
            "user_id": visit.user_id,
            "session_id": visit.session_id,
            "event_type": kind,
            "page": self._page(visit, kind),
            "referrer": visit.referrer,
            "product_id": visit.product_id if of_product else None,
            "price": _price(visit.product_id) if of_product else None,
            "quantity": self._rng.choice((1, 1, 1, 2, 3)) if kind in _WITH_QUANTITY else None,
            "country": visit.country,
            "device": visit.device,
        }

    def _page(self, visit: _Visit, kind: str) -> str:
        if kind == "page_view":
            return self._rng.choice(_PAGES)
        if kind == "search":
            return f"/search?q=item+{self._rng.randrange(500)}"
        return f"/products/{visit.product_id}" if kind == "product_view" else f"/{kind}"

    def _broken(self, event: dict[str, Any]) -> bytes:
        """One of the ways in which producers break records."""
        whole = _json(event)
        match self._rng.randrange(4):
            case 0:
                return whole[: self._rng.randrange(1, len(whole) - 1)]
            case 1:
                return _json({**event, "user_id": "not-a-number"})
            case 2:
                return whole.replace(b'"country":"', b'"country":"\xff\xfe')
            case _:
                return b"<html><body>502 Bad Gateway</body></html>"


def _json(event: dict[str, Any]) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


def _price(product_id: int) -> float:
    """The same for every event of a product."""
    return round(2.5 + product_id * 7919 % 20_000 / 100, 2)


def _draw(rng: random.Random, weights: dict[Any, int]) -> Any:
    return rng.choices(list(weights), list(weights.values()))[0]
