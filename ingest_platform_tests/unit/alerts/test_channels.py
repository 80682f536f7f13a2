"""Every channel against a real receiver: what arrives, and what a failure says."""

from __future__ import annotations

import logging
import ssl

import pytest

from ingest_platform.adapters.alerts.channel import DeliveryFailed
from ingest_platform.adapters.alerts.channels import sender, wants
from ingest_platform.errors import SpecError
from ingest_platform.model.alert import AlertKind, Severity
from ingest_platform.spec.alert_files import parse_alerts
from ingest_platform_tests.alert_receivers import mailbox
from ingest_platform_tests.factories import make_alert, make_transition

SENTINEL = "s3ntinel-value"


def channel(**fields):
    """One channel's settings, as YAML gives them."""
    (made,) = parse_alerts({"channels": [fields]}, {}, where="defs.yaml").channels
    return made


def mail_channel(box, **fields):
    return channel(
        type="email",
        host=box.host,
        port=box.port,
        sender="ingest@example.com",
        to=["ann@example.com", "bob@example.com"],
        **{"encryption": "none", **fields},
    )


def test_slack_gets_one_message_with_text_and_blocks(receiver):
    environ = {"SLACK_WEBHOOK_URL": f"{receiver.url}/services/T/B/{SENTINEL}"}
    told = [make_transition(what="lag <b> & more"), make_transition(kind=AlertKind.FAILING)]
    sender(channel(type="slack"), environ)(told, 5)
    (got,) = receiver.taken
    assert got.path == f"/services/T/B/{SENTINEL}"
    assert got.document["text"] == "clicks: 2 raised"
    first = got.document["blocks"][0]["text"]["text"]
    assert "[critical] clicks: lag &lt;b&gt; &amp; more" in first
    assert "*run*: `ingest-platform stream start clicks`" in first
    assert "*records behind*: 12,345" in first


def test_teams_gets_an_adaptive_card(receiver):
    sender(channel(type="teams"), {"TEAMS_WEBHOOK_URL": receiver.url})([make_transition()], 5)
    (attachment,) = receiver.taken[0].document["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    headline, facts = attachment["content"]["body"]
    assert headline["text"] == "\\[critical] clicks: the stream needs a person"
    assert {"title": "run", "value": "ingest-platform stream start clicks"} in facts["facts"]


def test_pagerduty_resolves_what_it_triggered_by_the_same_key(receiver):
    send = sender(
        channel(type="pagerduty", endpoint=f"{receiver.url}/v2/enqueue"),
        {"PAGERDUTY_ROUTING_KEY": SENTINEL},
    )
    send([make_transition(1), make_transition(2)], 5)
    trigger, resolve = (got.document for got in receiver.taken)
    assert (trigger["event_action"], resolve["event_action"]) == ("trigger", "resolve")
    assert trigger["dedup_key"] == resolve["dedup_key"] == "ingest-platform/clicks/needs_person"
    assert trigger["routing_key"] == resolve["routing_key"] == SENTINEL
    assert trigger["payload"]["severity"] == "critical"
    assert trigger["payload"]["group"] == "clicks"


def test_webhook_gets_everything_and_the_same_id_again(receiver):
    """At least once: the id is what tells a receiver that it has the message already."""
    environ = {"ALERT_WEBHOOK_URL": receiver.url, "HOOK_TOKEN": SENTINEL}
    send = sender(channel(type="webhook", token_env="HOOK_TOKEN"), environ)
    send([make_transition()], 5)
    send([make_transition()], 5)
    first, again = receiver.taken
    assert first.document == again.document
    assert first.headers["Idempotency-Key"] == again.headers["Idempotency-Key"]
    assert first.headers["Authorization"] == f"Bearer {SENTINEL}"
    (alert,) = first.document["alerts"]
    assert (alert["key"], alert["status"]) == ("clicks/needs_person", "raised")
    assert alert["command"] == "ingest-platform stream start clicks"


def test_mail_reaches_all_recipients_and_a_resolution_joins_its_thread(box):
    send = sender(mail_channel(box), {})
    send([make_transition(1)], 5)
    send([make_transition(2)], 5)
    raised, resolved = box.mails
    assert box.recipients[0] == ["ann@example.com", "bob@example.com"]
    assert raised["Subject"] == "[critical] clicks: the stream needs a person"
    assert resolved["Subject"] == "[resolved] clicks: the stream needs a person"
    assert raised["References"] == resolved["References"]
    text = raised.get_payload(decode=True).decode()
    assert "run: ingest-platform stream start clicks" in text


def test_mail_subject_stays_one_line(box):
    """A line break in an error's text must not become a header."""
    sender(mail_channel(box), {})([make_transition(what="a\nBcc: eve@example.com")], 5)
    assert box.mails[0]["Bcc"] is None
    assert box.mails[0]["Subject"] == "[critical] clicks: a Bcc: eve@example.com"


def test_mail_password_is_refused_by_settings_without_encryption(box):
    with pytest.raises(SpecError, match="not sent unencrypted"):
        mail_channel(box, username_env="SMTP_USER", password_env="SMTP_PASSWORD")


def test_mail_is_not_sent_to_a_server_without_the_wanted_encryption(box):
    with pytest.raises(DeliveryFailed, match="cannot be used"):
        sender(mail_channel(box, encryption="starttls"), {})([make_transition()], 5)
    assert not box.mails


def test_mail_server_that_refuses_the_message_is_told(box):
    box.refuse = f"554 {SENTINEL}"
    with pytest.raises(DeliveryFailed, match="answered 554") as raised:
        sender(mail_channel(box), {})([make_transition()], 5)
    assert SENTINEL not in str(raised.value)


@pytest.mark.parametrize("kind", ["slack", "teams", "webhook", "pagerduty"])
def test_failure_names_the_host_and_no_secret(receiver, kind, caplog):
    """The address of a chat webhook is its password."""
    caplog.set_level(logging.DEBUG)
    receiver.status, receiver.retry_after = 429, "7"
    url = f"{receiver.url}/{SENTINEL}"
    environ = {
        "SLACK_WEBHOOK_URL": url,
        "TEAMS_WEBHOOK_URL": url,
        "ALERT_WEBHOOK_URL": url,
        "PAGERDUTY_ROUTING_KEY": SENTINEL,
    }
    more = {"endpoint": receiver.url} if kind == "pagerduty" else {}
    with pytest.raises(DeliveryFailed, match=r"127\.0\.0\.1 answered HTTP 429") as raised:
        sender(channel(type=kind, **more), environ)([make_transition()], 5)
    assert raised.value.wait == 7
    assert SENTINEL not in str(raised.value)
    assert SENTINEL not in caplog.text


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "no url", "http://[", "ftp://x"])
def test_address_that_cannot_be_used_is_a_failed_delivery(url):
    with pytest.raises(DeliveryFailed) as raised:
        sender(channel(type="slack"), {"SLACK_WEBHOOK_URL": url})([make_transition()], 2)
    assert url not in str(raised.value)


def test_slow_receiver_is_given_up_in_time(receiver):
    receiver.delay = 30
    with pytest.raises(DeliveryFailed, match=r"did not answer within 0\.2 s"):
        sender(channel(type="slack"), {"SLACK_WEBHOOK_URL": receiver.url})([make_transition()], 0.2)


def test_missing_variable_is_named():
    with pytest.raises(SpecError, match="SLACK_WEBHOOK_URL is not set"):
        sender(channel(type="slack"), {})


def test_literal_address_is_refused_and_not_quoted():
    with pytest.raises(SpecError) as raised:
        channel(type="slack", url=f"https://hooks.example.com/{SENTINEL}")
    assert SENTINEL not in str(raised.value)


def test_channel_chooses_by_severity_and_stream():
    critical = channel(type="slack", min_severity="critical", streams=["clicks"])
    assert wants(critical, make_alert())
    assert wants(critical, make_alert(stream=""))
    assert not wants(critical, make_alert(stream="orders"))
    assert not wants(critical, make_alert(severity=Severity.ERROR))
    assert wants(critical, make_alert(kind=AlertKind.TEST, severity=Severity.WARNING))


def test_mail_login_over_tls(tmp_path):
    """STARTTLS and login, with a certificate that the client has reason to trust."""
    ssl_context, environ = _certificate(tmp_path)
    with (
        mailbox(tls_context=ssl_context, auth_required=True, require_starttls=True) as box,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("SSL_CERT_FILE", environ["SSL_CERT_FILE"])
        made = mail_channel(
            box, encryption="starttls", username_env="SMTP_USER", password_env="SMTP_PASSWORD"
        )
        sender(made, {"SMTP_USER": "ingest", "SMTP_PASSWORD": SENTINEL})([make_transition()], 5)
        assert box.logins == [("ingest", SENTINEL)]
        assert len(box.mails) == 1


def _certificate(folder) -> tuple[ssl.SSLContext, dict[str, str]]:
    import subprocess

    key, certificate = folder / "key.pem", folder / "certificate.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"),
            *("-keyout", str(key), "-out", str(certificate)),
        ],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    return context, {"SSL_CERT_FILE": str(certificate)}
