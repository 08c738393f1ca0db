"""Machines of a team: network namespaces, each joined by a cable to the one of the server, which is this one."""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from machine import until

SERVER = "10.0.0.5"
CABLE = "cable"
CLONE_NEWNET = 0x40000000
# The first process of a machine stays, and reaps those whose parents have ended.
INIT = f"ip link set lo up && ip link set {CABLE} up && sleep infinity; exit"

Made = TypeVar("Made")


def do(command: str) -> None:
    subprocess.run(command.split(), check=True)


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    with contextlib.suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


class Machine:
    """An address behind a cable, and the processes that run while it is on."""

    def __init__(self, address: str, home: Path) -> None:
        self.address, self.home = address, home
        self.network = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.power: subprocess.Popen[bytes] | None = None
        self.first = 0
        own = os.readlink("/proc/self/ns/net")
        until(f"{address} is there", lambda: os.readlink(f"/proc/{self.network.pid}/ns/net") != own)
        end = f"to-{address}"
        within = f"nsenter --target {self.network.pid} --net"
        do(f"ip link add {end} type veth peer name {CABLE} netns {self.network.pid}")
        do(f"ip address add {SERVER} peer {address} dev {end}")
        do(f"ip link set {end} up")
        do(f"{within} ip address add {address}/24 dev {CABLE}")

    def switch_on(self) -> None:
        apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", INIT]
        self.power = subprocess.Popen(["nsenter", "--target", str(self.network.pid), "--net", *apart])
        self.first = until("the machine is on", lambda: children(self.power.pid))[0]
        until("its processes see themselves alone", self.processes)

    def enter(self) -> list[str]:
        """What runs a command on the machine."""
        return ["nsenter", "--target", str(self.first), "--net", "--mount", "--pid"]

    def processes(self) -> list[int]:
        """The processes of the machine, besides those that keep it on."""
        look = ["sh", "-c", "echo /proc/[0-9]*"]
        said = subprocess.run([*self.enter(), *look], capture_output=True, text=True, check=False).stdout
        return [int(name.rpartition("/")[2]) for name in said.split() if name[-1].isdigit()]

    def cut_off(self) -> None:
        """Ends the power: nobody gets a last word, neither the processes nor their connections."""
        do(f"nsenter --target {self.network.pid} --net ip link set {CABLE} down")
        self.switch_off()

    def switch_off(self) -> None:
        """Kills the machine's first process, and with it all others."""
        if self.power:
            self.power.kill()
            self.power.wait()
            self.power = None

    def within(self, make: Callable[[], Made]) -> Made:
        """What `make` gives on the machine's network."""
        made: list[Made] = []

        def run() -> None:
            libc = ctypes.CDLL(None, use_errno=True)
            with open(f"/proc/{self.network.pid}/ns/net", "rb") as space:
                if libc.setns(space.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), "setns")
            made.append(make())

        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
        return made[0]

    def end(self) -> None:
        self.switch_off()
        self.network.kill()
        self.network.wait()


@contextlib.contextmanager
def machines(homes: dict[str, Path]) -> Iterator[dict[str, Machine]]:
    """Machines by address, all of them on."""
    made: dict[str, Machine] = {}
    try:
        for address, home in homes.items():
            made[address] = Machine(address, home)
            made[address].switch_on()
        yield made
    finally:
        for machine in made.values():
            machine.end()
