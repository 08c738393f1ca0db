#!/usr/bin/env python3
"""Counts the instructions of a durable POST by thread and by part of the server, beside bare axum's.

    benches/http/instructions.py                      builds both with line tables, some ten minutes the first time
    benches/http/instructions.py --binary BLACKBOARD --bare BARE_AXUM
    benches/http/instructions.py --binary BLACKBOARD --details 10

Instructions depend neither on what else the machine does nor on its disk. They are counted by valgrind's callgrind, and
each count is the difference of two runs, so that the start does not count:

- Door and writer: N and 2N POSTs of an 800 B item over 64 connections, with `--search off`.
- Compaction and indexer: a start with N commits that neither has seen, and one with none. So both do their work in
  large pieces, as after a time at full rate. While a server runs slowly under valgrind, they would do it in small ones.

Prints a Markdown table. `--details` also names the functions of each group. A binary needs line tables: set
CARGO_PROFILE_RELEASE_DEBUG=line-tables-only and CARGO_PROFILE_RELEASE_STRIP=none. Needs the Debian package valgrind.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path

sys.dont_write_bytecode = True

import backlog
import callgrind
import contenders
import groups
import load
import posts
import report
from contenders import ROOT, Running
from turns import CONNECTIONS

TARGET = ROOT / "target/instructions"
DOOR = ["tokio workers", "writer", "waker", groups.OTHER]
BEHIND = ["compaction", "indexer"]
BARE = "bare axum"
# Threads with fewer instructions a POST have no column.
THREAD_MIN = 100
# A whole piece of the compaction, which would be done while the posts go on.
POSTS_MAX = 4000

Threads = dict[str, callgrind.Thread]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", type=Path, help="the server, built with line tables")
    parser.add_argument("--bare", type=Path, help="bare axum, with line tables; without it there is no such column")
    parser.add_argument("--posts", type=int, default=2000, help=f"N, at most {POSTS_MAX} (2000)")
    parser.add_argument("--details", type=int, default=0, metavar="COUNT", help="functions to show of each group")
    parser.add_argument("--data", type=Path, default=ROOT / "target", help="where data goes: a real disk (target)")
    given = parser.parse_args()
    if not 0 < given.posts <= POSTS_MAX:
        parser.error(f"--posts takes 1 to {POSTS_MAX}")
    for binary in (given.binary, given.bare):
        if binary is not None and not os.access(binary, os.X_OK):
            parser.error(f"{binary} is no program")
    return given


def build() -> tuple[Path, Path]:
    """Both binaries, with line tables."""
    print("building", file=sys.stderr, flush=True)
    tables = {"CARGO_PROFILE_RELEASE_DEBUG": "line-tables-only", "CARGO_PROFILE_RELEASE_STRIP": "none"}
    cargo = ["cargo", "build", "--release", "--locked", "--package", "blackboard", "--package", "bare-axum"]
    environment = {**os.environ, **tables, "CARGO_TARGET_DIR": str(TARGET)}
    subprocess.run(cargo, cwd=ROOT, check=True, env=environment)
    return TARGET / "release/blackboard", TARGET / "release/bare-axum"


@contextmanager
def server(folder: Path, command: list, **options):
    """A server that listens, with its log in that folder."""
    log = folder / "log"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
    with contenders.process(command, log, env=clean, **options) as child:
        yield child, Running(contenders.announced(child, log), [child.pid], ("POST", contenders.ITEMS))


def counted(folder: Path, command: list, work: Callable[[Running], None]) -> Threads:
    """What each thread of a server executes from its start to its end, while it does that work."""
    with tempfile.TemporaryDirectory(dir=folder, prefix="counts-") as counts:
        out = Path(counts) / "out"
        command = [*callgrind.command(out), *command]
        with server(Path(counts), command, preexec_fn=callgrind.before_start()) as (_, running):
            work(running)
        threads: Threads = {}
        for thread in callgrind.threads(out):
            threads.setdefault(groups.role(thread), callgrind.Thread()).add(thread)
    return threads


def difference(more: Threads, less: Threads, roles: list[str]) -> Threads:
    none = callgrind.Thread()
    return {role: more.get(role, none).minus(less.get(role, none)) for role in roles}


def post(running: Running, path: str, number: int):
    try:
        posts.write(running.port, CONNECTIONS, posts.http("POST", path, load.item(1)), number=number)
    except (posts.Failed, OSError) as failure:
        raise load.Failed(f"POST {path}: {failure}") from failure


def told(text: str):
    print(text, file=sys.stderr, flush=True)


class Measurement:
    """All counts of a server."""

    def __init__(self, binary: Path, number: int, data: Path):
        self.binary, self.number, self.data = binary, number, data
        self.batch = 0.0

    def serve(self, folder: Path, *flags: str) -> list:
        command = [self.binary, "serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data", folder / "data"]
        return [*command, *flags]

    def threads(self) -> Threads:
        with tempfile.TemporaryDirectory(dir=self.data, prefix="instructions-") as folder:
            return self.door(Path(folder)) | self.behind(Path(folder))

    def door(self, folder: Path) -> Threads:
        """Threads that a POST goes through."""
        found = []
        for times in (2, 1):
            told(f"{times * self.number} POSTs")

            def work(running: Running, number: int = times * self.number):
                post(running, contenders.ITEMS, number)
                self.batch = number / backlog.metric(running, "commit_batch_writes_count")

            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                found.append(counted(folder, self.serve(Path(fresh), "--search", "off"), work))
        return difference(*found, DOOR)

    def behind(self, folder: Path) -> Threads:
        """Threads that follow the commits."""
        told("a start with nothing to do")
        with server(folder, self.serve(folder)) as (_, running):
            post(running, contenders.ITEMS, self.number)
            backlog.wait(running)
        nothing = counted(folder, self.serve(folder), backlog.wait)
        told(f"a start with {self.number} commits")
        with server(folder, self.serve(folder, "--search", "off")) as (child, running):
            post(running, contenders.ITEMS, self.number)
            left = backlog.uncompacted_bytes(running)
            # A server that is stopped would compact them.
            child.kill()
        if left < self.number * load.ITEM_BYTES / 2:
            raise load.Failed(f"only {left} bytes are left to compact; try fewer posts")
        return difference(counted(folder, self.serve(folder), backlog.wait), nothing, BEHIND)


def of_bare(binary: Path, number: int, data: Path) -> Threads:
    """The counts of bare axum, all threads as one."""
    found = []
    for times in (2, 1):
        told(f"{times * number} POSTs to bare axum")
        threads = counted(data, [binary], lambda running, n=times * number: post(running, "/item", n))
        whole = callgrind.Thread()
        for thread in threads.values():
            whole.add(thread)
        found.append({BARE: whole})
    return difference(*found, [BARE])


def table(threads: Threads, number: int) -> str:
    """Instructions a POST: a row a group, a column a thread."""
    sums = {role: thread.total() / number for role, thread in threads.items()}
    columns = {role: groups.sums(threads[role]) for role in threads if sums[role] >= THREAD_MIN}
    cells = {
        (group, role): sum(parts.values()) / number for role, found in columns.items() for group, parts in found.items()
    }
    ours = [role for role in columns if role != BARE]
    totals = Counter()
    for (group, role), instructions in cells.items():
        if role != BARE:
            totals[group] += instructions
    shown = {group for (group, _), instructions in cells.items() if cell(instructions)}
    rows = [
        [group, *(cell(cells.get((group, role), 0)) for role in ours), cell(totals[group])]
        for group in sorted(shown, key=lambda group: -totals[group])
    ]
    rows.append(["**total**", *(f"{sums[role]:,.0f}" for role in ours), f"**{sum(totals.values()):,.0f}**"])
    head = ["instructions a POST", *ours, "all"]
    if BARE in columns:
        head.append(BARE)
        for row in rows[:-1]:
            row.append(cell(cells.get((row[0], BARE), 0)))
        rows[-1].append(f"{sums[BARE]:,.0f}")
    return report.table(head, rows, right=True)


def cell(instructions: float) -> str:
    """A number if it is one of tens or more."""
    return f"{instructions:,.0f}" if abs(instructions) >= 10 else ""


def details(threads: Threads, number: int, count: int) -> str:
    """The most expensive functions of each group and thread, with the file of the line."""
    lines = []
    for role, thread in threads.items():
        found = groups.sums(thread)
        for group in sorted(found, key=lambda group: -sum(found[group].values())):
            lines.append(f"\n### {role}: {group}, {sum(found[group].values()) / number:,.0f}\n")
            for (function, file), instructions in found[group].most_common(count):
                if instructions >= number:
                    lines.append(f"- {instructions / number:,.0f} `{function.name[:120]}` in `{file[-60:]}`")
    return "\n".join(lines)


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    given = arguments()
    callgrind.version()
    binary, bare = (given.binary, given.bare) if given.binary else build()
    given.data.mkdir(parents=True, exist_ok=True)
    measurement = Measurement(binary.resolve(), given.posts, given.data)
    threads = measurement.threads()
    if bare:
        threads |= of_bare(bare.resolve(), given.posts, given.data)
    print(table(threads, given.posts))
    batch = f"{measurement.batch:.1f} in a batch"
    print(f"\n{given.posts} POSTs of {load.ITEM_BYTES} B, {CONNECTIONS} connections, {batch}.")
    if given.details:
        print(details(threads, given.posts, given.details))


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
    except (callgrind.Missing, contenders.NotStarted, load.Failed) as failure:
        sys.exit(f"error: {failure}")
    except subprocess.CalledProcessError as failure:
        sys.exit(f"error: {failure}")
