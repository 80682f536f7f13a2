"""Jitter without a random source: the same stream at the same point gets the same fraction.

A decision that is taken again at the next look must not change by chance.
"""

from __future__ import annotations

from hashlib import sha256


def fraction(*parts: object) -> float:
    """A number in [0, 1), spread evenly over different parts."""
    digest = sha256("/".join(map(str, parts)).encode()).digest()
    return int.from_bytes(digest[:6], "big") / 2**48
