"""What the supervisor leaves of a look: state, reason, and whether a person is needed."""

from __future__ import annotations

from ingest_platform.model.contact import Contact
from ingest_platform.model.decisions import Decision, GiveUp
from ingest_platform.spec import StreamSpec
from ingest_platform.supervise.decide import last_error
from ingest_platform.supervise.seen import Seen
from ingest_platform.supervise.shown import shown


def contact_of(spec: StreamSpec, seen: Seen, decision: Decision) -> Contact:
    """The contact of one look."""
    view, error = shown(spec, seen), last_error(seen)
    return Contact(
        stream=spec.name,
        at=seen.now.isoformat(timespec="seconds"),
        state=view.state,
        reason=view.reason,
        alert=view.alert,
        remedy=decision.remedy if isinstance(decision, GiveUp) else "",
        error=error.kind if error else "",
        message=error.message if error else "",
    )
