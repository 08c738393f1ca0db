"""Programs of the guide's workers: agent hosts with a scripted model, and a shell script.

Each can be made to do a task, to stay busy with it, and to fail.
"""

from __future__ import annotations

import os
import re
import threading
from pathlib import Path
from typing import Any, ClassVar

import host as hosts
from conversation import Call, Conversation
from model import Failing, Model

GUIDE = hosts.FOLDER.parents[1] / "docs" / "guide" / "tasks.md"
FILE = "pages.txt"
REASON = "the scripted model is out of credit"
WORDS = "one two three\n"
BUSY_S_MAX = 600

# The program of each host that is tried, and the call by which its model writes the file.
CONTENT = f'{{"file_path":"{FILE}","content":"3"}}'
SCRIPT = f'text(await tools.exec_command({{cmd: "echo 3 >{FILE}"}}));'
TRIED = {
    "claude-code": ("claude", Call("Write", CONTENT, "call_1")),
    "codex": ("codex", Call("exec", SCRIPT, "call_1", kind="custom")),
    "gemini-cli": ("gemini", Call("write_file", CONTENT, "call_1")),
}


class Program:
    """What one line of the guide runs. `place` is where the worker starts."""

    agent: ClassVar[str]

    def line(self, options: str) -> str:
        """The guide's command of this agent, with more options of `work`."""
        text = re.sub(r" *\\\n *", " ", GUIDE.read_text())
        found = re.findall(rf"^blackboard work demo --agent {self.agent} .*$", text, re.MULTILINE)
        if len(found) != 1:
            raise ValueError(f"{GUIDE.name} has {len(found)} workers of the agent {self.agent}")
        before, _, command = found[0].partition(" -- ")
        return f"{before} {options} -- {command}"

    def packages(self) -> tuple[str, ...]:
        return ()

    def install(self) -> None:
        """Installs the program, unless that was done."""

    def environment(self, place: hosts.Place, programs: Path) -> dict[str, str]:
        """Prepares `place` and the folder of programs; the variables of the worker."""
        raise NotImplementedError

    def good(self) -> tuple[Any, Any]:
        """From now on tasks are done: the item of one, and its result."""
        raise NotImplementedError

    def long(self) -> Any:
        """From now on a task takes longer than the test: the item of one."""
        raise NotImplementedError

    def is_busy(self, commands: list[str]) -> bool:
        """Whether the program is in the middle of the long task, as one of these processes."""
        raise NotImplementedError

    def go_on(self) -> Any:
        """The next attempt at the long task is done: its result."""
        raise NotImplementedError

    def bad(self) -> tuple[Any, str]:
        """From now on tasks fail: the item of one, and what the reason says."""
        raise NotImplementedError

    def file(self) -> str | None:
        """What the first done task leaves in the place's `work`."""
        return None


class HostProgram(Program):
    """An agent host. Its model writes a file by the host's own tool, and names the report that the item is about."""

    def __init__(self, host: hosts.Host, agent: str, call: Call) -> None:
        self.host, self.agent, self.call = host, agent, call  # type: ignore[misc]
        self.mode, self.asked, self.ended = "good", threading.Event(), threading.Event()

    def packages(self) -> tuple[str, ...]:
        return self.host.packages()

    def install(self) -> None:
        self.host.install()

    def environment(self, place: hosts.Place, programs: Path) -> dict[str, str]:
        place.model = Model(self, hosts.TARGET / f"work-{self.host.name}.jsonl").url
        self.host.write(place)
        # The guide's line trusts the folder itself.
        (place.home / ".gemini" / "trustedFolders.json").unlink(missing_ok=True)
        (programs / self.agent).symlink_to(self.host.program(self.agent))
        return hosts.variables(self.host, place)

    def answer(self, seen: Conversation) -> Call | str:
        """What the model says."""
        if self.mode == "bad":
            raise Failing(400, REASON)
        if not self.host.main(seen):
            return "ok"
        if self.mode == "long":
            self.asked.set()
            self.ended.wait(BUSY_S_MAX)
        if not seen.results:
            return self.call
        report = re.search(r"report-\d+", "\n".join(part.text for part in seen.texts))
        return f"{report[0]} has 3 pages." if report else "There is no report."

    def good(self) -> tuple[Any, Any]:
        self.mode = "good"
        return {"task": "Count the pages", "of": "report-7341"}, "report-7341 has 3 pages."

    def long(self) -> Any:
        self.asked.clear()
        self.ended.clear()
        self.mode = "long"
        return {"task": "Count the pages", "of": "report-7342"}

    def is_busy(self, commands: list[str]) -> bool:
        return self.asked.is_set() and any(self.agent in command for command in commands)

    def go_on(self) -> Any:
        self.mode = "good"
        self.ended.set()
        return "report-7342 has 3 pages."

    def bad(self) -> tuple[Any, str]:
        self.mode = "bad"
        return {"task": "Count the pages", "of": "report-7343"}, REASON

    def file(self) -> str | None:
        return FILE


class ShellProgram(Program):
    """The guide's shell script, which counts words. A pipe that nobody writes to keeps it busy."""

    agent = "counter"

    def environment(self, place: hosts.Place, programs: Path) -> dict[str, str]:
        self.pipe = place.work / "pipe"
        os.mkfifo(self.pipe)
        (place.work / "report.txt").write_text(WORDS)
        return {"PATH": os.environ["PATH"], "HOME": str(place.home), "LANG": "C.UTF-8"}

    def good(self) -> tuple[Any, Any]:
        return {"file": "report.txt"}, len(WORDS.split())

    def long(self) -> Any:
        return {"file": "pipe"}

    def is_busy(self, commands: list[str]) -> bool:
        return any(command.startswith("sh -c ") for command in commands)

    def go_on(self) -> Any:
        # The pipe opens once somebody reads it.
        threading.Thread(target=self.pipe.write_text, args=(WORDS,), daemon=True).start()
        return len(WORDS.split())

    def bad(self) -> tuple[Any, str]:
        return {"file": "missing.txt"}, "missing.txt"


def every() -> dict[str, Program]:
    """All programs, by the names that the harness takes."""
    known = hosts.every()
    tried = {name: HostProgram(known[name], *how) for name, how in TRIED.items()}
    return {**tried, "shell": ShellProgram()}
