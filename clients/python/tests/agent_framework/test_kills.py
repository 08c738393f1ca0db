"""Workflows of Microsoft Agent Framework that are killed, and go on in another process."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

from agent_blackboard.agent_framework import BlackboardCheckpointStorage

from .counting import LAST, counting

COUNTING = Path(__file__).with_name("counting.py")


async def test_a_killed_workflow_goes_on_in_another_process(url: str, session_name: str) -> None:
    command = [sys.executable, str(COUNTING), url, session_name, "4"]
    killed = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=300)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    async with BlackboardCheckpointStorage(url=url, session=session_name) as storage:
        latest = await storage.get_latest(workflow_name="counting")
        assert latest is not None
        result = await counting(storage).run(checkpoint_id=latest.checkpoint_id)
    (seen,) = result.get_outputs()
    assert [number for number, _ in seen] == list(range(LAST + 1))
    assert len({process for _, process in seen[:4]}) == 1
    assert len({process for _, process in seen[4:]} - {seen[0][1]}) == 1
