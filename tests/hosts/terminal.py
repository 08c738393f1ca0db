"""A pseudo terminal for hosts in their interactive mode, and somebody who types."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from host import Host
    from job import Player

ROWS, COLUMNS = 50, 160
PAUSE_S = 0.5
END_S = 2.0
ESCAPES = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Za-z]|[=>78DEHMNOZc])|\s+")


def words(screen: str) -> str:
    """What was drawn, without escapes and spaces: programs move the cursor instead of writing a space."""
    return ESCAPES.sub("", screen)


def typed(
    host: Host, player: Player, command: list[str], work: Path, variables: dict[str, str], log: Path
) -> int | None:
    """Runs a host on a terminal until the job is done; `host.keys` types, by what was drawn since."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    process = subprocess.Popen(
        command, cwd=work, env=variables | {"TERM": "xterm-256color"}, stdin=slave, stdout=slave, stderr=slave,
        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
    )  # fmt: skip
    os.close(slave)
    screen, end, finished = "", time.monotonic() + host.limit_s, None
    with log.open("w") as file:
        while process.poll() is None and time.monotonic() < end:
            if select.select([master], [], [], 0.2)[0]:
                with contextlib.suppress(OSError):
                    text = os.read(master, 65536).decode(errors="replace")
                    file.write(text)
                    screen += text
            for keys in host.keys(words(screen)):
                time.sleep(PAUSE_S)
                file.write(f"\n<<typed {keys!r}>>\n")
                os.write(master, keys.encode())
                screen = ""
            if player.at == len(player.steps):
                finished = finished or time.monotonic()
                if time.monotonic() - finished > END_S:
                    break
    code = process.poll()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    os.close(master)
    return 0 if finished else code
