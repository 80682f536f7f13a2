"""`ingest-platform alerts` and its finding in `check`, on real receivers and outboxes."""

from __future__ import annotations

import json

import pytest
import yaml

from ingest_platform.adapters.alerts.outbox import Outbox
from ingest_platform.adapters.local_objects import LocalObjects
from ingest_platform.maintain.preflight.alerts import check_alerts
from ingest_platform.maintain.preflight.kinds import Kind, Level
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.alert_receivers import http_receiver, mailbox
from ingest_platform_tests.factories import NOW, make_alert

SENTINEL = "s3ntinel-value"
WEBHOOK = {"type": "webhook"}


@pytest.fixture
def receiver():
    with http_receiver() as made:
        yield made


@pytest.fixture
def configure(tmp_path, monkeypatch, receiver):
    """Writes a deployment with one stream and these channels; returns its state folder."""
    monkeypatch.setenv("INGEST_DEFS", str(tmp_path / "defs"))
    monkeypatch.setenv("INGEST_ALERTS_DIR", str(tmp_path / "spare"))
    monkeypatch.setenv("ALERT_WEBHOOK_URL", f"{receiver.url}/{SENTINEL}")

    def write(*channels: dict):
        stream = {
            "name": "clicks",
            "source": {"topic": "clicks"},
            "decode": {"schema": "id BIGINT"},
            "table": {"path": str(tmp_path / "lake" / "clicks")},
        }
        for name, kind, attributes in (
            ("clicks", "KafkaDeltaTable", stream),
            ("alerts", "Alerts", {"channels": list(channels)}),
        ):
            folder = tmp_path / "defs" / name
            folder.mkdir(parents=True)
            document = {"type": f"ingest_platform.{kind}", "attributes": attributes}
            (folder / "defs.yaml").write_text(yaml.safe_dump(document))
        return tmp_path / "lake" / "_ingest"

    return write


def test_test_reaches_every_channel_and_closes_what_it_opened(run, configure, receiver):
    with mailbox() as box:
        configure(
            WEBHOOK,
            {"type": "email", "host": box.host, "port": box.port, "encryption": "none",
             "sender": "ingest@example.com", "to": ["ann@example.com"]},
        )  # fmt: skip
        result = run("alerts", "test", "--json")
    assert result.exit_code == 0, result.output
    tried = json.loads(result.stdout)["channels"]
    assert [(one["channel"], one["ok"]) for one in tried] == [("webhook", True), ("email", True)]
    assert [got.document["alerts"][0]["status"] for got in receiver.taken] == ["raised", "resolved"]
    assert len(box.mails) == 2


def test_channel_that_does_not_take_it_is_exit_code_3_and_shows_no_address(
    run, configure, receiver
):
    configure(WEBHOOK)
    receiver.status = 404
    result = run("alerts", "test")
    assert result.exit_code == 3
    assert "127.0.0.1 answered HTTP 404" in result.output
    assert SENTINEL not in result.output


def test_channel_without_its_variable_is_exit_code_2_and_others_are_tried(run, configure, receiver):
    configure({"type": "slack", "url_env": "NOT_SET_ANYWHERE"}, WEBHOOK)
    result = run("alerts", "test", "--json")
    assert result.exit_code == 2
    slack, webhook = json.loads(result.stdout)["channels"]
    assert "NOT_SET_ANYWHERE is not set" in slack["error"]
    assert webhook["ok"]


def test_no_channel_is_a_mistake(run, configure):
    configure()
    result = run("alerts", "test")
    assert result.exit_code == 2
    assert "no alert channel is configured" in result.output


def test_list_shows_what_is_open_and_who_was_not_told(run, configure):
    outbox = Outbox(LocalObjects(configure(WEBHOOK)))
    outbox.raise_(make_alert(), None, NOW)
    spared = make_alert(stream="", kind="storage_unreachable", subject="s3a://lake")
    outbox.raise_(spared, None, NOW)
    outbox.resolve(spared.key, outbox.shelves()[spared.key], "well", NOW)
    result = run("alerts", "list", "--json")
    assert result.exit_code == 0, result.output
    (alert,) = json.loads(result.stdout)["alerts"]
    assert alert["key"] == "clicks/needs_person"
    assert alert["waiting"] == {"webhook": ""}
    shown = run("alerts", "list").output
    assert "ingest-platform stream start clicks" in shown
    assert "webhook waits" in shown


def test_list_of_a_quiet_deployment(run, configure):
    configure(WEBHOOK)
    result = run("alerts", "list")
    assert (result.exit_code, result.output) == (0, "no alert is open\n")


def test_check_warns_when_nobody_would_be_told():
    (finding,) = check_alerts(parse_alerts({}, {}, where="f"), {})
    assert (finding.level, finding.kind) == (Level.WARNING, Kind.NO_CHANNEL)
    assert "no alert channel is configured" in finding.what


def test_check_finds_a_missing_variable_and_an_open_address():
    channels = [{"type": "slack"}, {"type": "teams"}, {"type": "webhook"}]
    environ = {
        "TEAMS_WEBHOOK_URL": f"http://teams.example.com/{SENTINEL}",
        "ALERT_WEBHOOK_URL": "http://receiver.internal",
    }
    findings = list(check_alerts(parse_alerts({"channels": channels}, {}, where="f"), environ))
    assert [(finding.level, finding.kind) for finding in findings] == [
        (Level.ERROR, Kind.CHANNEL_INCOMPLETE),
        (Level.WARNING, Kind.CHANNEL_IN_THE_CLEAR),
    ]
    assert "SLACK_WEBHOOK_URL is not set" in findings[0].what
    assert "TEAMS_WEBHOOK_URL is http://" in findings[1].what
    assert SENTINEL not in str(findings)


def test_settings_declared_twice_are_refused(run, configure, tmp_path):
    configure(WEBHOOK)
    again = tmp_path / "defs" / "more"
    again.mkdir()
    (again / "defs.yaml").write_text("type: ingest_platform.Alerts\nattributes: {}\n")
    result = run("alerts", "test")
    assert result.exit_code == 2
    assert "2 components of type ingest_platform.Alerts" in result.output
