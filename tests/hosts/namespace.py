"""A network namespace with loopback alone, in which a script runs again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def isolated(script: Path, *arguments: str) -> int:
    """Runs a script where only loopback can be reached, with processes of its own; its exit code."""
    # The shell stays, as the first process: it reaps those whose parents have ended.
    inside = 'ip link set lo up && "$@"; exit $?'
    command = ["unshare", "-rn", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", inside, "sh"]
    return subprocess.run([*command, sys.executable, str(script), *arguments], check=False).returncode
