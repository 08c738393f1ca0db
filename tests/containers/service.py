"""The system service under systemd, which is the first process of a root of its own."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

from documents import Pages
from engine import CHECKOUT, REPOSITORY, Broken, House
from scenes import OPERATIONS, Stage

HEADING = "As a system service"
BOARD = "http://127.0.0.1:8733"
DROP_IN = "/etc/systemd/system/blackboard.service.d"


def play(binary: Path, pages: Pages, log: Path) -> int:
    """Installs the service by the document's commands, and breaks it; returns the number of checks."""
    house = House(
        "/lib/systemd/systemd",
        "--unit=basic.target",
        log=log,
        ending=signal.SIGRTMIN + 3,
        branch=f"blackboard-tests-{os.getpid()}",
    )
    try:
        house.until("systemctl is-active basic.target", "active")
        house.put(REPOSITORY / "packaging", CHECKOUT)
        house.put(binary, "/tmp/built")
        house.run(f"install -D /tmp/built/{binary.name} {CHECKOUT}/target/release/blackboard")
        stage = Stage(house, pages)
        _pasted(stage)
        _killed(stage)
        _without_token(stage)
        stage.see("systemctl stop blackboard; systemctl show --property Result blackboard", "Result=success")
        stage.see("journalctl --quiet --output cat --unit blackboard --lines 20", '"stopped"')
        return stage.passed
    finally:
        house.end()


def _pasted(stage: Stage) -> None:
    stage.paste(OPERATIONS, HEADING, 0, '{"sessions":[]', "bb_")
    # It was ready when the command returned: curl is not repeated in that block.
    stage.see("systemctl show --property Type,ActiveState blackboard", "Type=notify\nActiveState=active")
    stage.see("ls /var/lib/blackboard/backups/2026-11-22", "blackboard.db")


def _killed(stage: Stage) -> None:
    stage.see("systemctl kill --signal KILL blackboard")
    stage.until("systemctl show --property ActiveState,NRestarts blackboard", "NRestarts=1\nActiveState=active")
    stage.see(f"curl -s {BOARD}/readyz", '"status":"ok"')


def _without_token(stage: Stage) -> None:
    """A token's file that only root can read, and then the document's way to give it."""
    setting = "Environment=BLACKBOARD_ADMIN_TOKEN_FILE=/etc/blackboard-token"
    stage.see(
        f"""
        (umask 077; printf 'bb_%s' "$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=')" >/etc/blackboard-token)
        mkdir -p {DROP_IN}
        printf '[Service]\\n{setting}\\n' >{DROP_IN}/override.conf
        systemctl daemon-reload
        systemctl restart blackboard
        """,
        fails=True,
    )
    said = stage.see("journalctl --quiet --output cat --unit blackboard --lines 20", "belongs to user 0 with mode 0600")
    if not re.search(r"runs as user \d{5}, and /etc/blackboard-token", said):
        raise Broken(f"the journal does not name the user and the file: {said}")
    stage.until("systemctl show --property NRestarts blackboard", "NRestarts=1")
    stage.until("systemctl show --property SubState blackboard", "SubState=auto-restart")
    (drop_in,) = re.findall(r"```ini\n(.*?)```", (REPOSITORY / OPERATIONS).read_text(), re.DOTALL)
    stage.see(
        f"""
        printf %s '{drop_in}' >{DROP_IN}/override.conf
        systemctl daemon-reload
        systemctl restart blackboard || {{ journalctl --quiet --output cat --unit blackboard --lines 9; exit 1; }}
        """
    )
    ask = f'curl -s -w " %{{http_code}}" -H "Authorization: Bearer $(cat /etc/blackboard-token)" {BOARD}/v1/sessions'
    stage.see(ask, " 200")
