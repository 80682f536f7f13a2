"""Ports: the given one or a clear refusal, else one that stays the same."""

from __future__ import annotations

import random
import socket
from pathlib import Path

import pytest

from ingest_platform.embedded.ports import choose_ports, is_free
from ingest_platform.errors import PortTakenError


def choose(path: Path, seed: int = 1, **wanted: int | None) -> dict[str, int]:
    return choose_ports(path, wanted, rng=random.Random(seed))


def test_a_taken_port_is_refused_by_name(tmp_path: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        s.listen()
        port = s.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {port} for broker is in use"):
            choose(tmp_path / "ports.json", broker=port)
    assert not (tmp_path / "ports.json").exists()


def test_the_choice_is_kept_for_the_next_start(tmp_path: Path) -> None:
    """Bookmarks, consoles and checkpoints of the demo name the address."""
    first = choose(tmp_path / "ports.json", a=None, b=None)
    assert first["a"] != first["b"]
    assert choose(tmp_path / "ports.json", seed=2, a=None, b=None) == first


def test_a_kept_port_that_is_taken_meanwhile_is_replaced(tmp_path: Path) -> None:
    first = choose(tmp_path / "ports.json", a=None)["a"]
    with socket.socket() as s:
        s.bind(("127.0.0.1", first))
        s.listen()
        assert not is_free(first)
        assert choose(tmp_path / "ports.json", seed=2, a=None)["a"] != first


def test_an_unreadable_memory_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text("[1,")
    assert choose(tmp_path / "ports.json", a=None)["a"]
