"""Run as a script: start a command that outlives everyone, print its pid, and exit.

The caller would be the parent of a child that it started itself, and the child a zombie until
reaped; since this script exits at once, the command becomes init's. It runs without site-packages,
so it must import the standard library only.

Usage: `python -I -S detach.py LOG_FILE COMMAND...`
"""

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Start the command in a session of its own, its output appended to the log file."""
    log, *command = sys.argv[1:]
    try:
        with Path(log).open("ab") as output:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
    except OSError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"{child.pid}\n")
    child.returncode = 0  # not waited for, by design: silences Python's warning about that
    return 0


if __name__ == "__main__":
    sys.exit(main())
