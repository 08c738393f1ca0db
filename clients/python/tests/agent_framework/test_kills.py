"""Workflows of Microsoft Agent Framework that are killed, and go on in another process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

from .counting import LAST

COUNTING = Path(__file__).with_name("counting.py")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(COUNTING), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)


def test_a_killed_workflow_goes_on_in_another_process(url: str, session_name: str) -> None:
    killed = run(url, session_name, "4")
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    again = run(url, session_name, "-1")
    assert again.returncode == 0, again.stderr
    (seen,) = json.loads(again.stdout)
    assert [number for number, _ in seen] == list(range(LAST + 1))
    processes = [process for _, process in seen]
    assert processes == [processes[0]] * 4 + [processes[-1]] * 3
    assert processes[0] != processes[-1]
