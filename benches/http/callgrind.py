"""Instruction counts of a server, by valgrind's callgrind: what each thread executed, by function and file.

An inlined function counts for the file that it stands in, since callgrind names the file of each line.
"""

import ctypes
import os
import platform
import re
import shutil
import struct
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

# The server has as many workers as processors, so that more of them would change the counts.
PROCESSORS = 2
# Versions before this one pass prctl(PR_GET_AUXV) to the kernel, which names a vDSO that valgrind has taken away.
PASSES_AUXV_BEFORE = (3, 22)
PR_GET_AUXV = 0x41555856
PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER = 38, 22, 2
# By the machine: the number of prctl, and the audit architecture.
PRCTL = {"x86_64": (157, 0xC000003E), "aarch64": (167, 0xC00000B7)}


class Missing(Exception):
    """valgrind is not installed or cannot run here, or the binary lacks what it needs."""


class Function(NamedTuple):
    """A function as callgrind knows it: its name, and the file that it begins in."""

    name: str
    file: str


@dataclass
class Thread:
    """What one thread executed, or the difference of two such counts."""

    # Instructions by function and file of the line.
    own: Counter = field(default_factory=Counter)
    # Instructions of calls, by the caller, the file of the call, and the callee.
    calls: Counter = field(default_factory=Counter)

    def total(self) -> int:
        return sum(self.own.values())

    def add(self, other: "Thread"):
        self.own.update(other.own)
        self.calls.update(other.calls)

    def minus(self, other: "Thread") -> "Thread":
        own, calls = Counter(self.own), Counter(self.calls)
        own.subtract(other.own)
        calls.subtract(other.calls)
        return Thread(own, calls)


def version() -> tuple[int, ...]:
    """The version of valgrind."""
    if shutil.which("valgrind") is None:
        raise Missing("valgrind is not installed; try: apt-get install valgrind")
    said = subprocess.run(["valgrind", "--version"], capture_output=True, text=True, check=True).stdout
    return tuple(int(number) for number in re.findall(r"\d+", said)[:2])


def command(out: Path) -> list[str]:
    """What a command line begins with, so that its counts go to files whose names begin with `out`."""
    # Without fair scheduling one thread may keep the others from running for a long time.
    options = ["--separate-threads=yes", "--fair-sched=try", f"--callgrind-out-file={out}"]
    return ["valgrind", "--quiet", "--tool=callgrind", *options]


def before_start() -> Callable[[], None]:
    """What a process does before it becomes valgrind."""
    processors = set(sorted(os.sched_getaffinity(0))[:PROCESSORS])
    if version() >= PASSES_AUXV_BEFORE:
        return lambda: os.sched_setaffinity(0, processors)
    if platform.machine() not in PRCTL:
        raise Missing(f"valgrind before 3.22 cannot run the server on {platform.machine()}")
    libc = ctypes.CDLL(None, use_errno=True)
    steps = filter_steps(*PRCTL[platform.machine()])

    def prepare():
        os.sched_setaffinity(0, processors)
        install_filter(libc, steps)

    return prepare


def filter_steps(prctl: int, architecture: int) -> bytes:
    """A filter in the kernel's language that answers prctl(PR_GET_AUXV) with EINVAL, as older kernels do."""
    load, equal, end = 0x20, 0x15, 0x06
    allow, invalid = 0x7FFF0000, 0x00050000 | 22
    steps = [
        (load, 0, 0, 4),
        (equal, 0, 5, architecture),
        (load, 0, 0, 0),
        (equal, 0, 3, prctl),
        # The low half of the first argument.
        (load, 0, 0, 16),
        (equal, 0, 1, PR_GET_AUXV),
        (end, 0, 0, invalid),
        (end, 0, 0, allow),
    ]
    return b"".join(struct.pack("=HBBI", *step) for step in steps)


def install_filter(libc, steps: bytes):
    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_char_p))

    program = Program(len(steps) // 8, steps)
    if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_NO_NEW_PRIVS")
    if libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.byref(program), 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "PR_SET_SECCOMP")


def threads(out: Path) -> list[Thread]:
    """The counts of each thread, once the process has ended."""
    files = sorted(out.parent.glob(f"{out.name}*"))
    found = [parsed(file) for file in files]
    if not any(thread.total() for thread in found):
        raise Missing(f"valgrind wrote no counts to {out}*")
    if not any(file.endswith(".rs") for thread in found for _, file in thread.own):
        raise Missing(
            "the binary has no line tables; build it with CARGO_PROFILE_RELEASE_DEBUG=line-tables-only and "
            "CARGO_PROFILE_RELEASE_STRIP=none"
        )
    return [thread for thread in found if thread.total()]


def parsed(file: Path) -> Thread:
    """The counts in a file of callgrind's format, whose positions are lines and whose only event is instructions."""
    with open(file, errors="replace") as lines:
        return Reader().read(lines)


class Reader:
    """Reads callgrind's format: names are written once, and then numbered."""

    def __init__(self):
        self.names = {"file": {}, "function": {}}
        self.thread = Thread()
        self.function = None
        # The file of the line; it differs from the function's in inlined code.
        self.file = "???"
        self.callee_file = None
        self.callee = None

    def read(self, lines: Iterator[str]) -> Thread:
        for line in lines:
            if line[0] in "0123456789+-*":
                self.cost(int(line.split()[1]))
            elif "=" in line[:6]:
                key, _, value = line.rstrip("\n").partition("=")
                self.position(key, value, lines)
        return self.thread

    def position(self, key: str, value: str, lines: Iterator[str]):
        if key in ("fl", "fi", "fe"):
            self.file = self.name("file", value)
        elif key == "fn":
            self.function = Function(self.name("function", value), self.file)
        elif key in ("cfi", "cfl"):
            self.callee_file = self.name("file", value)
        elif key == "cfn":
            self.callee = Function(self.name("function", value), self.callee_file or self.file)
        elif key == "calls":
            # The next line has the instructions of the calls, those of further calls within them included.
            cost = int(next(lines).split()[1])
            self.thread.calls[self.function, self.file, self.callee] += cost
            self.callee_file = None

    def cost(self, instructions: int):
        self.thread.own[self.function, self.file] += instructions

    def name(self, kind: str, value: str) -> str:
        """The name in `(number) name`, or the one that was given for that number before."""
        number, _, name = value.partition(" ")
        if name:
            self.names[kind][number] = name
        return self.names[kind].get(number, value)
