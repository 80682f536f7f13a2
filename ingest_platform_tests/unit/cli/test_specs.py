"""What a person types becomes a spec, or a message that helps."""

from __future__ import annotations

import os

import pytest

from ingest_platform.cli.specs import find, read_deployment, select
from ingest_platform.errors import SpecError


@pytest.fixture
def clicks(deployment):
    deployment.declare("orders")
    return deployment.declare("clicks")


def test_a_name_a_file_and_a_folder_mean_the_same_stream(clicks):
    found = find("clicks", os.environ)
    assert (found.spec.name, found.path) == ("clicks", clicks)
    assert find(str(clicks), os.environ).spec == found.spec
    assert find(str(clicks.parent), os.environ).spec == found.spec


def test_an_unknown_name_lists_the_known_ones_and_guesses(clicks):
    with pytest.raises(SpecError, match=r"no stream 'click'; known: clicks, orders") as caught:
        find("click", os.environ)
    assert caught.value.remedy == "did you mean 'clicks'?"


def test_a_broken_spec_does_not_hide_the_others(clicks, deployment):
    """One user's typo must not keep the operator from auditing another stream."""
    deployment.declare("broken", extra="  nonsense: 1\n")
    assert find("clicks", os.environ).spec.name == "clicks"
    assert [path.parent.name for path, _ in read_deployment(os.environ).broken] == ["broken"]
    with pytest.raises(SpecError, match="nonsense"):
        find("broken", os.environ)
    with pytest.raises(SpecError, match="nonsense"):
        select((), os.environ)


def test_a_name_declared_twice_is_refused(clicks, deployment):
    deployment.declare("clicks", folder="copy")
    with pytest.raises(SpecError, match="2 specs declare"):
        find("clicks", os.environ)


def test_a_file_with_several_streams_needs_a_name(clicks):
    clicks.write_text(clicks.read_text() + "---\n" + clicks.read_text().replace("clicks", "more"))
    assert find(str(clicks), os.environ, "more").spec.name == "more"
    with pytest.raises(SpecError) as caught:
        find(str(clicks), os.environ)
    assert "--name" in caught.value.remedy


def test_no_folder_and_no_streams_say_what_to_do(deployment, monkeypatch):
    with pytest.raises(SpecError, match="known: none") as caught:
        find("clicks", os.environ)
    assert "scaffold" in caught.value.remedy
    monkeypatch.setenv("INGEST_DEFS", str(deployment.root / "nowhere"))
    with pytest.raises(SpecError, match="no such folder"):
        find("clicks", os.environ)
