"""E-mail by SMTP. A raised alert and its resolution are one thread."""

from __future__ import annotations

import hashlib
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime

from ingest_platform.adapters.alerts.channel import DeliveryFailed, secret
from ingest_platform.adapters.alerts.text import body, cut, title
from ingest_platform.model.alert import Transition
from ingest_platform.spec.alerts import EmailChannel

_SUBJECT = 200


class Email:
    """A `Sender`."""

    def __init__(self, spec: EmailChannel, environ: Mapping[str, str]) -> None:
        self._spec = spec
        self._user = secret(environ, spec.username_env) if spec.username_env else ""
        self._password = secret(environ, spec.password_env) if spec.password_env else ""

    def __call__(self, told: Sequence[Transition], timeout: float) -> None:
        """Send one message to all recipients."""
        try:
            with self._connected(timeout) as server:
                if self._spec.encryption == "starttls":
                    server.starttls(context=ssl.create_default_context())
                if self._user:
                    server.login(self._user, self._password)
                refused = server.send_message(message(told, self._spec))
        except smtplib.SMTPResponseException as error:
            # The server's text stays out: it may quote the login.
            raise DeliveryFailed(f"{self._spec.host} answered {error.smtp_code}") from None
        except (smtplib.SMTPException, OSError) as error:
            reason = f"{self._spec.host} cannot be used: {type(error).__name__}"
            raise DeliveryFailed(reason) from None
        if refused:
            raise DeliveryFailed(f"{self._spec.host} refused {', '.join(sorted(refused))}")

    def _connected(self, timeout: float) -> smtplib.SMTP:
        host, port = self._spec.host, self._spec.port
        if self._spec.encryption == "tls":
            context = ssl.create_default_context()
            return smtplib.SMTP_SSL(host, port, timeout=timeout, context=context)
        return smtplib.SMTP(host, port, timeout=timeout)


def message(told: Sequence[Transition], spec: EmailChannel) -> EmailMessage:
    """A plain text message, whose id is the same for every repetition of it."""
    mail = EmailMessage()
    mail["Subject"] = cut(" ".join(title(told).split()), _SUBJECT)
    mail["From"] = spec.sender
    mail["To"] = ", ".join(spec.to)
    mail["Date"] = format_datetime(datetime.now(UTC))
    mail["Message-ID"] = _id(" ".join(transition.id for transition in told))
    thread = _id(f"{told[0].alert.key} {told[0].alert.since}")
    mail["In-Reply-To"] = mail["References"] = thread
    mail["Auto-Submitted"] = "auto-generated"
    mail.set_content(f"{body(told)}\n")
    return mail


def _id(text: str) -> str:
    return f"<{hashlib.sha256(text.encode()).hexdigest()[:32]}@ingest-platform>"
