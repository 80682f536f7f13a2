"""The error tree. Every error names what was found, where, and how to mend it.

IngestError
├── UserError           exit 2   the spec, an option or a path is wrong: a person edits something
│   ├── SpecError
│   ├── SecretInSpecError
│   ├── StreamPausedError
│   ├── RepairUnderWayError
│   └── UnsafeRetentionError     files that readers need would be deleted: refused
├── EnvironmentFault    exit 3   the world around the process is not as it must be
│   ├── RetryableFault           heals by itself: back off and try again
│   │   ├── KafkaUnreachableError
│   │   │   └── KafkaDeniedError     brokers answer, but refuse the login or the encryption
│   │   ├── OutOfMemoryFault     the JVM ended for want of memory: repeated, it is told as failing
│   │   └── StorageUnavailableError
│   ├── JavaNotFoundError
│   ├── JarLockError
│   ├── PortTakenError
│   ├── ServiceStartError
│   ├── TopicMissingError
│   ├── StorageDeniedError
│   ├── UnsafeStorageError       commits could be lost here: refused
│   ├── DiskFullError
│   └── LeaseLostError           another driver took over: this one ends, by design
└── DataProblem         exit 4   going on would lose or double data: a person decides
    ├── LedgerImbalanceError
    ├── CheckpointDamagedError
    ├── LogDamagedError          an entry of the table's log is missing
    ├── OffsetsLostError         retention passed the checkpoint, or the topic was recreated
    └── UnexpectedFieldsError
"""


class IngestError(Exception):
    """Base of every error that a user may see.

    Args:
        what: The finding, with the offending value and the rule that it broke.
        where: File and field, host and port, or path: whatever locates it.
        remedy: What to do about it, as an instruction.
    """

    exit_code = 1
    retryable = False

    def __init__(self, what: str, *, where: str | None = None, remedy: str) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.remedy = remedy

    def __str__(self) -> str:
        where = f"\n  where:  {self.where}" if self.where else ""
        return f"{self.what}{where}\n  remedy: {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword-only arguments do not survive the default pickling of exceptions, and Dagster
        # carries errors across processes.
        return _rebuild, (type(self), self.what, self.where, self.remedy)


def _rebuild(kind: type[IngestError], what: str, where: str | None, remedy: str) -> IngestError:
    return kind(what, where=where, remedy=remedy)


class UserError(IngestError):
    """Something that a person wrote is wrong; nothing was started."""

    exit_code = 2


class SpecError(UserError):
    """A spec does not say what a spec must say."""


class SecretInSpecError(SpecError):
    """A credential stands literally in a spec; secrets come from the environment only."""


class StreamPausedError(UserError):
    """Someone paused the stream; it starts again only after a resume."""


class RepairUnderWayError(UserError):
    """A repair holds the stream's lease; no driver may start before it hands it back."""


class UnsafeRetentionError(UserError):
    """A vacuum would delete files that readers, writers or time travel may still need."""


class EnvironmentFault(IngestError):  # noqa: N818  (a family, like OSError)
    """The machine, a service or a credential is not as it must be."""

    exit_code = 3


class RetryableFault(EnvironmentFault):
    """A fault that heals without a person: the supervisor backs off and tries again."""

    retryable = True


class KafkaUnreachableError(RetryableFault):
    """No broker answered."""


class KafkaDeniedError(KafkaUnreachableError):
    """The brokers refused the login, or the connection's encryption did not come about.

    Retryable as well: where logins are checked by another service, its outage looks the same.
    """


class OutOfMemoryFault(RetryableFault):
    """The driver's JVM ran out of memory and ended."""


class StorageUnavailableError(RetryableFault):
    """The object store or file system did not answer, or asked to slow down."""


class JavaNotFoundError(EnvironmentFault):
    """No Java of a supported version was found."""


class JarLockError(EnvironmentFault):
    """The locked jars do not fit the installed packages, or a download is not what was locked."""


class PortTakenError(EnvironmentFault):
    """A port that was asked for is in use."""


class ServiceStartError(EnvironmentFault):
    """An embedded service did not become healthy."""


class TopicMissingError(EnvironmentFault):
    """The topic does not exist, or this principal may not see it."""


class StorageDeniedError(EnvironmentFault):
    """The bucket or path does not exist, or the credentials do not allow what is needed."""


class UnsafeStorageError(EnvironmentFault):
    """Concurrent writers could lose commits on this storage or with these settings."""


class DiskFullError(EnvironmentFault):
    """No space is left where the driver must write."""


class LeaseLostError(EnvironmentFault):
    """A driver with a higher generation holds the stream's lease."""


class DataProblem(IngestError):  # noqa: N818  (a family)
    """Going on would lose or double data."""

    exit_code = 4


class LedgerImbalanceError(DataProblem):
    """A batch's counts do not add up; it was not committed."""


class CheckpointDamagedError(DataProblem):
    """The checkpoint is missing, truncated or behind the table."""


class LogDamagedError(DataProblem):
    """An entry of a table's log is missing, so that nobody can tell what the table holds."""


class OffsetsLostError(DataProblem):
    """Offsets that were not yet read are no longer in the topic."""


class UnexpectedFieldsError(DataProblem):
    """Records carry fields that the schema does not know, and the policy is to fail."""
