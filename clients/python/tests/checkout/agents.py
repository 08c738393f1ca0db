"""Processes with UFO's agents, and the turns that they take over pipes."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any

import scene
import workspace

WORKER = Path(__file__).with_name("worker.py")
ANSWER_SECONDS = 120
END_SECONDS = 60
MODULES = {
    "original": ("ufo.agents.memory.blackboard", "ufo.agents.memory.memory"),
    "shim": ("shim", "ufo.agents.memory.memory"),
    "drop-in": ("agent_blackboard.ufo.blackboard", "agent_blackboard.ufo.memory"),
}
"""Modules of the classes of the board and of the agents' memories, by the board that a process runs over."""


class HarnessFailed(Exception):
    """Failure of a check or of a process: the message says which and where its output is."""


@dataclass(frozen=True)
class Answer:
    """Answer of a worker: what it found, the prompts that left for the model, the board's calls in seconds."""

    result: Any
    seconds: float
    prompts: list[str]
    calls: list[tuple[str, float]]
    gap: float
    complaints: list[str]

    @property
    def board_seconds(self) -> float:
        """Seconds spent in the board's methods."""
        return sum(seconds for _, seconds in self.calls)


@dataclass
class Run:
    """Steps that were run: the turns, their answers, the board as each process sees it at the end."""

    turns: list[scene.Turn] = field(default_factory=list)
    answers: list[Answer] = field(default_factory=list)
    others: list[Answer] = field(default_factory=list)
    """Answers of each process to its first command and to the reads at the end."""
    ends: list[dict[str, Any]] = field(default_factory=list)
    memories: list[dict[str, list[dict[str, Any]]]] = field(default_factory=list)

    @property
    def prompts(self) -> list[str]:
        """Prompt of each step, as JSON."""
        return [prompt for answer in self.answers for prompt in answer.prompts]

    @property
    def board(self) -> dict[str, list[Any]]:
        """Board's dictionary at the end, as the first process sees it."""
        board: dict[str, list[Any]] = self.ends[0]["board"]
        return board

    def calls(self) -> list[tuple[str, float]]:
        """Every call of the board and of the memories with its seconds, construction and last reads included."""
        return [call for answer in [*self.answers, *self.others] for call in answer.calls]


class Worker:
    """Process that runs `worker.py` in a directory, over one of the boards."""

    def __init__(self, checkout: Path, directory: Path, board: str, log_path: str, **variables: str) -> None:
        command = [sys.executable, str(WORKER), "--log-path", log_path]
        if board == "drop-in":
            command = [sys.executable, "-m", "agent_blackboard.ufo", "--", *command]
        if board == "shim":
            command.append("--shim")
        self._board = board
        base = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        self._output = directory / f"{board}-{len(list(directory.glob('*.output')))}.output"
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                cwd=directory,
                env=workspace.environment(checkout, {**base, **variables}),
            )

    def do(self, what: str, **arguments: Any) -> Answer:
        """Sends a command and waits for its answer."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"do": what, **arguments}).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise HarnessFailed(f"'{what}' found its process ended: {self.tail()}") from None
        line = self._line()
        if not line:
            raise HarnessFailed(f"'{what}' ended its process: {self.tail()}")
        answer = json.loads(line)
        answer["calls"] = [(name, seconds) for name, seconds in answer["calls"]]
        return Answer(**answer)

    def greet(self) -> Answer:
        """First command: checks that the process runs over the board that it was started with."""
        answer = self.do("hello")
        found = (answer.result["board"], answer.result["memory"])
        if found != MODULES[self._board]:
            raise HarnessFailed(f"the classes are of {found} and not of {MODULES[self._board]}")
        return answer

    def close(self) -> int:
        """Ends the input, waits for the process, returns its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(END_SECONDS)

    def kill(self) -> None:
        """Ends the process if it is still there."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(END_SECONDS)

    def tail(self) -> str:
        """End of what the process printed."""
        return self._output.read_text(encoding="utf-8", errors="replace")[-3000:]

    def _line(self) -> bytes:
        assert self._process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self._process.stdout, selectors.EVENT_READ)
            if not selector.select(ANSWER_SECONDS):
                raise HarnessFailed(f"no answer within {ANSWER_SECONDS} s: {self.tail()}")
        return self._process.stdout.readline()


class Workers:
    """Workers by the agents that they run, ended on leaving the block."""

    def __init__(self, by_agent: dict[str, Worker]) -> None:
        self.by_agent = by_agent

    @property
    def all(self) -> list[Worker]:
        """Workers, each once."""
        return list(dict.fromkeys(self.by_agent.values()))

    def __enter__(self) -> Workers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in self.all:
            worker.kill()

    def close(self) -> None:
        """Ends the processes as a program ends and demands that each succeeds."""
        for worker in self.all:
            if status := worker.close():
                raise HarnessFailed(f"a process ended with {status}: {worker.tail()}")


def run_steps(
    workers: Workers,
    turns: Sequence[scene.Turn],
    before: Callable[[scene.Turn], None] = lambda turn: None,
) -> Run:
    """Lets the agents take their turns, calling `before` ahead of each."""
    run = Run(others=[worker.greet() for worker in workers.all])
    shared: dict[str, Any] = {}
    for turn in turns:
        before(turn)
        answer = workers.by_agent[turn.agent].do(
            "turn", kind=turn.kind, agent=turn.agent, step=turn.step, answer=turn.answer(), shared=shared
        )
        shared = answer.result
        run.turns.append(turn)
        run.answers.append(answer)
    return run


def read_ends(workers: Workers, run: Run) -> None:
    """Adds each process's view of the board, as a dictionary and as a prompt, and its agents' memories to a run."""
    for worker in workers.all:
        answer = worker.do("board")
        run.others.append(answer)
        run.ends.append(answer.result)
        run.memories.append(worker.do("memories").result)
