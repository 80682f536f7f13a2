"""Which file declares a deployment's alerts: for sensor, command line, drivers and pods alike."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest_platform.adapters.launchers import spec_files
from ingest_platform.errors import SpecError
from ingest_platform.spec.alert_files import beside, declaring, load_alerts
from ingest_platform_tests.factories import make_spec

SLACK = "type: ingest_platform.Alerts\nattributes: {channels: [{type: slack}]}\n"


def write(path: Path, text: str = "type: ingest_platform.KafkaDeltaTable\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_driver_finds_the_folder_beside_its_own(tmp_path):
    spec = write(tmp_path / "clicks" / "defs.yaml")
    write(tmp_path / "alerts" / "defs.yaml", SLACK)
    (channel,) = load_alerts(beside(spec), {}).channels
    assert channel.type == "slack"
    assert load_alerts(beside(spec.parent), {}).channels == (channel,)


def test_without_a_file_nobody_is_told(tmp_path):
    assert load_alerts(beside(write(tmp_path / "clicks" / "defs.yaml")), {}).channels == ()


def test_variable_wins_and_must_name_such_a_file(tmp_path):
    spec = write(tmp_path / "clicks" / "defs.yaml")
    named = write(tmp_path / "elsewhere.yaml", SLACK)
    assert load_alerts(beside(spec), {"INGEST_ALERTS": str(named)}).channels
    with pytest.raises(SpecError, match="without a component of type"):
        load_alerts(beside(spec), {"INGEST_ALERTS": str(spec)})
    with pytest.raises(SpecError, match="cannot read the spec"):
        load_alerts(beside(spec), {"INGEST_ALERTS": str(tmp_path / "none.yaml")})


def test_broken_file_of_a_stream_is_no_reason_to_stay_silent(tmp_path):
    write(tmp_path / "orders" / "defs.yaml", "{")
    spec = write(tmp_path / "clicks" / "defs.yaml")
    write(tmp_path / "alerts" / "defs.yaml", SLACK)
    assert declaring(spec, {}) == tmp_path / "alerts" / "defs.yaml"


def test_pod_gets_the_settings_and_finds_them(tmp_path):
    """They name variables, never values, so a ConfigMap may hold them."""
    spec = write(tmp_path / "defs" / "clicks" / "defs.yaml")
    write(tmp_path / "defs" / "alerts" / "defs.yaml", SLACK)
    files = spec_files(make_spec(), spec, {})
    for name, text in files.items():
        write(tmp_path / "pod" / name, text)
    assert load_alerts(beside(tmp_path / "pod" / "defs.yaml"), {}).channels
