"""Command that runs a program with UFO's memory modules aliased: `python -m agent_blackboard.ufo -- <command>`.

The alias is a `sitecustomize` on PYTHONPATH, so the program's own Python processes have it too. A Python that ignores
PYTHONPATH (`-I`, `-E`) or `site` (`-S`) does not.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ALIAS = Path(__file__).parent / "alias"
USAGE = """usage: python -m agent_blackboard.ufo -- command [argument ...]

Runs a program of UFO's with its blackboard on a Blackboard server, for example
    BLACKBOARD_URL=http://127.0.0.1:8733 python -m agent_blackboard.ufo -- python -m ufo --task report

BLACKBOARD_URL, BLACKBOARD_TOKEN and BLACKBOARD_SESSION say which server and session; docs/guide/ufo.md has the rest.
"""


def main(arguments: list[str]) -> int:
    """Run the command in place of this process, or say how to call it. Returns an exit status."""
    command = arguments[1:] if arguments[:1] == ["--"] else arguments
    if arguments[:1] in (["-h"], ["--help"]):
        print(USAGE, end="")
        return 0
    if not command or command[0].startswith("-"):
        print(USAGE, end="", file=sys.stderr)
        return 2
    try:
        return run(command, environment())
    except OSError as error:
        print(f"{command[0]} cannot be run: {error.strerror}", file=sys.stderr)
        return 127


def environment() -> dict[str, str]:
    """The environment of the program: this one's, with the alias before all else on PYTHONPATH."""
    entries = [str(ALIAS), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(entries)}


def run(command: list[str], variables: dict[str, str]) -> int:
    """Become the program, or where processes cannot do that, wait for it and return its status."""
    if os.name != "nt":
        os.execvpe(command[0], command, variables)  # noqa: S606 - the user's command
    return subprocess.run(command, env=variables, check=False).returncode  # noqa: S603 - the user's command


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
