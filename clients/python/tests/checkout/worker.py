"""Process that runs UFO's real agents: one command as a JSON line on its input, one answer as a JSON line.

Replaced are only the model's completion, the Windows client's tools and the font of annotations. The board's
methods are wrapped with a stopwatch. The prompt of a step is recorded where it leaves for the model.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import wraps
from pathlib import Path
from typing import Any, TextIO
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parent))

import platform_stubs
import scene

HEARTBEAT_SECONDS = 0.02
SHARED = (
    "REQUEST",
    "SUBTASK",
    "PREVIOUS_SUBTASKS",
    "HOST_MESSAGE",
    "SESSION_STEP",
    "CURRENT_ROUND_ID",
    "ROUND_STEP",
    "APPLICATION_PROCESS_NAME",
    "APPLICATION_ROOT_NAME",
    "APPLICATION_WINDOW_INFO",
    "ROUND_RESULT",
)


class Complaints(logging.Handler):
    """Collector of what UFO logs as a warning or worse: its strategies swallow the exceptions themselves."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.levelname} {record.getMessage()}")


class Stopwatch:
    """Wraps methods of classes and keeps the seconds of each outermost call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, float]] = []
        self._running = False

    def wrap(self, owner: type, *names: str) -> None:
        """Replaces the methods `names` of `owner` that exist by timed ones."""
        for name in names:
            method = getattr(owner, name, None)
            if callable(method):
                setattr(owner, name, self._timed(f"{owner.__name__}.{name}", method))

    def _timed(self, label: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                return method(*args, **kwargs)
            self._running = True
            start = time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                self._running = False
                self.calls.append((label, time.perf_counter() - start))

        return timed


class Heartbeat:
    """Task in the agents' event loop that measures by how many seconds it was kept from running."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def run(self) -> None:
        """Beats until it is cancelled."""
        while True:
            start = time.perf_counter()
            await asyncio.sleep(HEARTBEAT_SECONDS)
            self.longest = max(self.longest, time.perf_counter() - start - HEARTBEAT_SECONDS)

    def take(self) -> float:
        """Longest delay since the last call."""
        longest, self.longest = self.longest, 0.0
        return longest


class Model:
    """Scripted model behind UFO's `llm_call.get_completion`: keeps each prompt as JSON and gives the next answer."""

    def __init__(self) -> None:
        self.answers: list[str] = []
        self.prompts: list[str] = []

    def get_completion(self, messages: Any, *args: Any, **kwargs: Any) -> tuple[str, float]:
        """Next answer and its cost in dollars."""
        self.prompts.append(json.dumps(messages))
        return self.answers.pop(0), 0.01


class Agents:
    """HostAgent and AppAgents of UFO with the context of a session."""

    def __init__(self, log_path: str) -> None:
        from aip.messages import Result, ResultStatus
        from config.config_loader import get_ufo_config
        from ufo.agents.agent.host_agent import AgentConfigResolver, AgentFactory, RunningMode
        from ufo.module.basic import FileWriter
        from ufo.module.context import Context, ContextNames
        from ufo.module.dispatcher import BasicCommandDispatcher

        agents = self

        class Tools(BasicCommandDispatcher):  # type: ignore[misc]
            """Dispatcher whose tools answer from the scene."""

            async def execute_commands(self, commands: list[Any], timeout: float = 6000) -> list[Any]:
                return [
                    Result(
                        status=ResultStatus.SUCCESS,
                        result=scene.tool_result(command.tool_name, agents.step, agents.turn_of),
                        namespace=command.tool_type,
                    )
                    for command in commands
                ]

        self.step = 0
        self.turn_of = "host"
        self.tools = Tools()
        self.names = ContextNames
        self.context = Context()
        self.context.attach_command_dispatcher(self.tools)
        self.context.set(ContextNames.LOG_PATH, log_path)
        self.context.set(ContextNames.REQUEST, scene.REQUEST)
        self.context.set(ContextNames.MODE, "normal")
        self.context.set(ContextNames.REQUEST_LOGGER, FileWriter(os.path.join(log_path, "request.log")))
        self.context.set(ContextNames.LOGGER, FileWriter(os.path.join(log_path, "response.log")))

        config = get_ufo_config()
        system = config.system
        self.host = AgentFactory.create_agent(
            "host",
            "HostAgent",
            config.host_agent.visual_mode,
            system.HOSTAGENT_PROMPT,
            system.HOSTAGENT_EXAMPLE_PROMPT,
            system.API_PROMPT,
        )
        self.by_name = {"host": self.host}
        for name, (title, root) in scene.WINDOWS.items():
            resolved = AgentConfigResolver.resolve_app_agent_config(root, title, RunningMode.NORMAL)
            self.by_name[name] = AgentFactory.create_agent(**resolved)
            self.by_name[name].host = self.host

    def share(self, shared: dict[str, Any]) -> None:
        """Takes over what the session's context holds after another process's turn."""
        from ufo.agents.processors.schemas.target import TargetInfo

        for name, value in shared.items():
            if name == "APPLICATION_WINDOW_INFO":
                value = value and TargetInfo(**value)
            if name == "ROUND_STEP":
                value = {int(round_id): steps for round_id, steps in value.items()}
            self.context.set(self.names[name], value)

    def shared(self) -> dict[str, Any]:
        """Part of the context that all agents of a session see."""
        values = {name: self.context.get(self.names[name]) for name in SHARED}
        if values["APPLICATION_WINDOW_INFO"] is not None:
            values["APPLICATION_WINDOW_INFO"] = values["APPLICATION_WINDOW_INFO"].model_dump(mode="json")
        return values

    async def take(self, kind: str, agent_name: str, step: int) -> None:
        """Runs a turn: an agent's step, with its questions or as the last of a round."""
        self.step, self.turn_of = step, agent_name
        agent = self.by_name[agent_name]
        if kind == "round":
            await last_round(agent, self.context, step)
            return
        await agent.process(self.context)
        if kind == "ask":
            agent.processor.processing_context.set_local("questions", scene.questions(step))
            await pending_state(agent).handle(agent, self.context)


def pending_state(agent: Any) -> Any:
    """State in which UFO's agent asks its questions."""
    from ufo.agents.states.app_agent_state import PendingAppAgentState
    from ufo.agents.states.host_agent_state import PendingHostAgentState

    return PendingHostAgentState() if type(agent).__name__ == "HostAgent" else PendingAppAgentState()


async def last_round(host: Any, context: Any, step: int) -> None:
    """Runs UFO's own `BaseRound` to its end: the steps that are left, then the request goes to the board."""
    from ufo.module.basic import BaseRound

    host.set_state(host.default_state)
    await BaseRound(f"{scene.REQUEST} ({step})", host, context, False, step).run()


async def whole_session(agents: Agents, model: Model) -> dict[str, Any]:
    """Runs UFO's `Session` of two rounds from its start to its end."""
    from ufo.module.sessions.session import Session

    session = Session("checkout", False, "1", scene.REQUEST)
    session.context.attach_command_dispatcher(agents.tools)
    model.answers = [
        json.dumps(scene.host_answer(0)),
        *(json.dumps(scene.app_answer(step)) for step in (1, 2, 3)),
        json.dumps(scene.app_answer(4, status="FINISH")),
        json.dumps(scene.host_answer(5)),
        json.dumps(scene.app_answer(8, status="FINISH")),
        json.dumps(scene.host_answer(9, status="FINISH")),
        json.dumps(scene.host_answer(10)),
        json.dumps(scene.app_answer(13, status="FINISH")),
        json.dumps(scene.host_answer(15, status="FINISH")),
    ]
    with patch("ufo.module.interactor.Prompt.ask", side_effect=["And once more, in German", "N"]):
        await session.run()
    board = session.host_agent.blackboard
    return {
        "results": session.results,
        "steps": session.step,
        "request_to_evaluate": session.request_to_evaluate(),
        "board": board.blackboard_to_dict(),
        "prompt": board.blackboard_to_prompt(),
    }


async def session_end(agents: Agents, model: Model) -> dict[str, Any]:
    """Runs UFO's `FollowerSession` up to its second round, whose start clears the requests on the board."""
    from ufo.module.sessions.session import FollowerSession

    plan = Path("plan.json")
    steps = ["Open it", "Close it"]
    plan.write_text(json.dumps({"task": "Follow", "object": "report", "steps": steps}), encoding="utf-8")
    session = FollowerSession("follower", str(plan), False, 2)
    session.context.attach_command_dispatcher(agents.tools)
    session.create_new_round()
    host = session.host_agent
    model.answers = [json.dumps(scene.host_answer(0)), json.dumps(scene.host_answer(5, status="FINISH"))]
    await host.process(session.context)
    await last_round(host, session.context, 0)
    before = host.blackboard.blackboard_to_dict()
    session.create_new_round()
    agent = host.get_active_appagent()
    return {
        "before": before,
        "after": agent.blackboard.blackboard_to_dict(),
        "requests": agent.blackboard.requests.length,
        "same_board": agent.blackboard is host.blackboard,
        "memory": agent.memory.length,
        "request_to_evaluate": session.request_to_evaluate(),
    }


async def ask(agents: Agents, model: Model, answers: list[str]) -> dict[str, Any]:
    """Runs a host's step, then `process_asker` twice: with a person's answers and without a person."""
    model.answers = [json.dumps(scene.host_answer(0))]
    await agents.take("step", "host", 0)
    agents.host.processor.processing_context.set_local("questions", scene.questions(0))
    with patch("ufo.module.interactor.Prompt.ask", side_effect=answers):
        agents.host.process_asker(ask_user=True)
    agents.host.process_asker(ask_user=False)
    kept = Path("customization/global_memory.jsonl").read_text(encoding="utf-8")
    return {"questions": agents.host.blackboard.questions.list_content, "file": kept}


def plain(item: Any) -> dict[str, Any]:
    """Members of a memory's item that JSON can hold."""
    found = {}
    for name, value in item.to_dict().items():
        try:
            found[name] = json.loads(json.dumps(value, allow_nan=False))
        except (TypeError, ValueError):
            continue
    return found


class Worker:
    """Loop over the commands. The agents are there before the first."""

    def __init__(self, answers: TextIO, log_path: str) -> None:
        self._answers = answers
        self._complaints = Complaints()
        self._stopwatch = Stopwatch()
        self._heartbeat = Heartbeat()
        self._model = Model()
        from ufo.agents.agent.host_agent import Blackboard
        from ufo.agents.memory.memory import Memory

        self._stopwatch.wrap(Blackboard, "__init__", "is_empty", "blackboard_to_prompt", "blackboard_to_dict")
        self._stopwatch.wrap(Blackboard, "add_trajectories", "add_image", "add_questions", "add_requests")
        self._stopwatch.wrap(Memory, "add_memory_item", "clear", "to_json", "filter_memory_from_keys")
        self._agents = Agents(log_path)
        self._stopwatch.wrap(type(self._agents.host.blackboard.requests), "clear", "to_json")

    async def run(self) -> None:
        """Answers commands until the input ends."""
        from PIL import ImageFont
        from ufo.automator.ui_control.screenshot import AnnotationDecorator
        from ufo.llm import llm_call

        logging.getLogger().addHandler(self._complaints)
        reader = asyncio.StreamReader(limit=2**26)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        beating = asyncio.create_task(self._heartbeat.run())
        with ExitStack() as stack:
            stack.enter_context(patch.object(llm_call, "get_completion", self._model.get_completion))
            font = staticmethod(lambda name, size: ImageFont.load_default(size))
            stack.enter_context(patch.object(AnnotationDecorator, "_get_font", font))
            while line := await reader.readline():
                answer = await self._answer(json.loads(line))
                self._answers.write(json.dumps(answer) + "\n")
                self._answers.flush()
        beating.cancel()

    async def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        start = time.perf_counter()
        result = await self._do(command)
        # The drop-in sends what a turn wrote at the loop's next turn; that belongs to the time of the step.
        await asyncio.sleep(0)
        seconds = time.perf_counter() - start
        await asyncio.sleep(2 * HEARTBEAT_SECONDS)
        answer = {
            "result": result,
            "seconds": seconds,
            "prompts": self._model.prompts[:],
            "calls": self._stopwatch.calls[:],
            "gap": self._heartbeat.take(),
            "complaints": self._complaints.lines[:],
        }
        for kept in (self._model.prompts, self._stopwatch.calls, self._complaints.lines):
            kept.clear()
        return answer

    async def _do(self, command: dict[str, Any]) -> Any:
        name = command["do"]
        if name == "turn":
            self._agents.share(command["shared"])
            self._model.answers = [command["answer"]]
            await self._agents.take(command["kind"], command["agent"], command["step"])
            return self._agents.shared()
        if name == "board":
            board = self._agents.host.blackboard
            return {"board": board.blackboard_to_dict(), "prompt": board.blackboard_to_prompt()}
        if name == "memories":
            return {
                name: [plain(item) for item in agent.memory.content] for name, agent in self._agents.by_name.items()
            }
        if name == "ask":
            return await ask(self._agents, self._model, command["answers"])
        if name == "session":
            return await whole_session(self._agents, self._model)
        if name == "session_end":
            return await session_end(self._agents, self._model)
        host = self._agents.host
        return {"board": type(host.blackboard).__module__, "memory": type(host.memory).__module__}


def main() -> None:
    """Reads the arguments, hides UFO's prints, runs the worker."""
    arguments = argparse.ArgumentParser()
    arguments.add_argument("--log-path", required=True)
    arguments.add_argument("--shim", action="store_true")
    options = arguments.parse_args()
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    platform_stubs.install()
    if options.shim:
        import shim

        sys.modules["ufo.agents.memory.blackboard"] = shim
    os.makedirs(options.log_path, exist_ok=True)
    asyncio.run(Worker(answers, options.log_path).run())


if __name__ == "__main__":
    main()
