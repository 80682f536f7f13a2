"""Make the virtual environment from the lock file: `python3 bootstrap/environment.py .venv`.

Needs nothing but Python itself: no pip, no ensurepip (which Debian packages apart), no uv. A uv on
PATH is used if there is one; otherwise uv is installed into the environment, from the package index
that pip would use.
"""

from __future__ import annotations

import hashlib
import html
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.parse
import urllib.request
import zipfile
from pathlib import Path

OLDEST = (3, 11)
NEWEST = (3, 13)
UV = "0.13.9"
INDEX = "https://pypi.org/simple"


def main() -> int:
    """Make it; the exit code is 0, or 3 with one line on what to do."""
    venv = Path(sys.argv[1]).absolute()
    try:
        python = find_python()
        make_venv(python, venv)
        uv = find_uv(venv)
        sync(uv, venv)
    except (OSError, ValueError, subprocess.CalledProcessError, urllib.error.URLError) as error:
        sys.stderr.write(f"error: the Python environment could not be made: {error}\n")
        return 3
    return 0


def find_python() -> str:
    """This Python if its version fits, else another one on PATH.

    Raises:
        ValueError: There is none.
    """
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return sys.executable
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        if found and not subprocess.run([found, "-V"], capture_output=True, check=False).returncode:
            return found
    mine = platform.python_version()
    raise ValueError(
        f"python3 is {mine}, needed is 3.11, 3.12 or 3.13: install one, then `make PYTHON=...`"
    )


def make_venv(python: str, venv: Path) -> None:
    """Make the environment, unless it is there and works."""
    inside = venv / "bin" / "python"
    if inside.exists() and not subprocess.run([inside, "-c", ""], check=False).returncode:
        return
    say(f"making {venv} with {python}")
    subprocess.run([python, "-m", "venv", "--clear", "--without-pip", str(venv)], check=True)


def find_uv(venv: Path) -> str:
    """The uv on PATH or of the environment; installed there if there is neither."""
    inside = venv / "bin" / "uv"
    for candidate in (shutil.which("uv"), str(inside)):
        # A version manager's shim may be there and yet not work.
        if candidate and works(candidate):
            return candidate
    say(f"installing uv {UV} into {venv}")
    install_uv(inside)
    return str(inside)


def works(uv: str) -> bool:
    """Whether it runs."""
    try:
        done = subprocess.run([uv, "--version"], capture_output=True, check=False)
    except OSError:
        return False
    return done.returncode == 0


def sync(uv: str, venv: Path) -> None:
    """Bring the environment to what the lock file says."""
    say("installing the locked packages")
    env = {**os.environ, "UV_PROJECT_ENVIRONMENT": str(venv), "VIRTUAL_ENV": str(venv)}
    subprocess.run([uv, "sync", "--frozen"], env=env, check=True)


def install_uv(target: Path) -> None:
    """Take the program out of its wheel; the index's sha256 of the wheel must be right.

    Raises:
        ValueError: The index has no wheel for this machine, or sent another one.
    """
    index = os.environ.get("PIP_INDEX_URL") or os.environ.get("UV_DEFAULT_INDEX") or INDEX
    page = urllib.parse.urljoin(index.rstrip("/") + "/", "uv/")
    url, sha256 = choose_wheel(read(page).decode(), page)
    with tempfile.TemporaryDirectory() as scratch:
        wheel = Path(scratch) / "uv.whl"
        wheel.write_bytes(read(url))
        found = hashlib.sha256(wheel.read_bytes()).hexdigest()
        if found != sha256:
            raise ValueError(f"{url} has sha256 {found}, but the index says {sha256}")
        with zipfile.ZipFile(wheel) as archive:
            name = next(n for n in archive.namelist() if n.endswith("/scripts/uv"))
            target.write_bytes(archive.read(name))
    target.chmod(0o755)


def choose_wheel(page: str, base: str) -> tuple[str, str]:
    """The wheel for this machine: URL and sha256, from a PEP 503 page."""
    soabi = str(sysconfig.get_config_var("SOABI"))
    libc = "manylinux" if soabi.endswith("gnu") else "musllinux"
    machine = platform.machine()
    for link in re.findall(r'href="([^"]+)"', page):
        url, _, fragment = urllib.parse.urljoin(base, html.unescape(link)).partition("#sha256=")
        name = url.rpartition("/")[2]
        fits = libc in name and f"_{machine}" in name
        if name.startswith(f"uv-{UV}-") and name.endswith(".whl") and fits and fragment:
            return url, fragment
    raise ValueError(f"{base} has no uv {UV} for {libc} on {machine}; install uv yourself")


def read(url: str) -> bytes:
    """The content behind a URL."""
    request = urllib.request.Request(url, headers={"Accept": "text/html"})  # noqa: S310
    with urllib.request.urlopen(request, timeout=60) as response:  # noqa: S310
        return response.read()


def say(text: str) -> None:
    """Tell what happens."""
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
