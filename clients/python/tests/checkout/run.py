"""Checks of the drop-in under a UFO checkout: UFO's own strategies, agents and sessions with nothing but the alias.

    git clone --depth 1 https://github.com/microsoft/UFO /tmp/UFO
    python3 -m venv /tmp/venv && . /tmp/venv/bin/activate
    pip install ./clients/python -r clients/python/tests/requirements/checkout.txt
    cargo build
    python clients/python/tests/checkout/run.py --checkout /tmp/UFO --blackboard target/debug/blackboard

runs from the repository's root and prints a line a check, with figures. It ends with a status other than 0 at the
first check that fails. `--only trips` runs one check; it may be repeated. The checkout is only read. UFO runs on any
system: replaced are the model's answers, the tools of the Windows client and packages that no check reaches. The
original runs in one process over its own classes; the drop-in by `python -m agent_blackboard.ufo -- …` in one process
or in three, each with one agent. The server away means SIGKILL. Last tried with UFO's commit b28183fd4264.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import scene
import workspace
from agents import HarnessFailed, Run, Worker, Workers, read_ends, run_steps
from comparison import LOGS, board_after, complaints, mirrored, order_kept, own_writes_seen, same
from served import Server, Trip

TRIPS_MAX = 2.0
CALL_SECONDS_MAX = 10.0
"""The limit of a call while the server is away: 5 s at most, and what a slow machine adds."""
EXIT_SECONDS_MAX = 20.0
"""The limit of a process's end while the server is away: 5 s for the writes that are left, and the interpreter."""
AWAY_SECONDS = {6: 0.0, 18: 20.0, 44: 0.0}
"""Seconds for which the server is away, by the step in which it is killed. 0: it is restarted at once."""
KILL_AFTER_SECONDS = 0.05
FROZEN_SECONDS = 15.0
FROZEN_FROM_STEP = 3
AWAY_PAUSE_SECONDS = 1.0
SETTLE_SECONDS = 60.0
AGENTS = ("host", "app1", "app2")
ANSWERS = ["The third", "   ", "Ja, „v2“ 🙂"]
DEFAULT_ANSWER = "As you like"
QA_PAIRS = [{"question": f"Which colour is {name}?", "answer": name} for name in ("blau", "赤", "green")]


class Harness:
    """Checkout, server and scratch directory of one run of the command."""

    def __init__(self, checkout: Path, server: Server, scratch: Path) -> None:
        self._checkout = checkout
        self._server = server
        self._scratch = scratch
        self._fifty: dict[str, Run] = {}
        self._trips: dict[str, list[Trip]] = {}

    def check_session(self) -> str:
        """A whole session of UFO in one process gives the same prompts, results and board as the original."""
        original, dropped = self._both("session")
        prompts = same("prompts", original["prompts"], dropped["prompts"])
        same("results and board", original["result"], dropped["result"])
        return f"{prompts} prompts, {original['result']['steps']} steps, request_to_evaluate and board equal"

    def check_session_end(self) -> str:
        """The start of a follower's second round clears the requests, as the original does."""
        original, dropped = self._both("session_end")
        same("board before and after", original["result"], dropped["result"])
        cleared = len(original["result"]["before"]["requests"]) - len(original["result"]["after"]["requests"])
        foreign = {"request_7": "Of another process"}
        self._server.ask("POST", "checkout-shared-end/requests", foreign)
        shared = self._one("drop-in", "session_end", {"BLACKBOARD_SESSION": "checkout-shared-end"})["result"]
        same("requests before", [foreign, *original["result"]["before"]["requests"]], shared["before"]["requests"])
        same("requests after", [foreign], shared["after"]["requests"])
        return f"{cleared} request cleared, trajectories kept, another writer's request kept"

    def check_asker(self) -> str:
        """`process_asker` writes the same questions and the same file, with a person and without one."""
        original, dropped = self._both("ask", answers=ANSWERS)
        same("questions and file", original["result"], dropped["result"])
        return f"{len(original['result']['questions'])} pairs on the board, a blank answer passed over"

    def check_asker_elsewhere(self) -> str:
        """`process_asker` asks on the board: a person answers and skips over HTTP, the time limit gives the default."""
        original = self._one("original", "ask", {}, answers=[ANSWERS[0], "", DEFAULT_ANSWER])
        session = "checkout-elsewhere"
        variables = {"SESSION": session, "ASK": "board", "ASK_WAIT": "3", "ASK_DEFAULT": DEFAULT_ANSWER}
        named = {f"BLACKBOARD_{name}": value for name, value in variables.items()}
        with ThreadPoolExecutor() as pool:
            person = pool.submit(self._answer_two, session)
            dropped = self._one("drop-in", "ask", named, answers=[])
            person.result()
        same("file", original["result"]["file"], dropped["result"]["file"])
        # The server marks an answer that the time limit gave.
        pairs = [{name: item[name] for name in ("question", "answer")} for item in dropped["result"]["questions"]]
        answered = [pair for pair in pairs if pair["answer"]]
        same("answered questions", original["result"]["questions"], answered)
        seen = len(dropped["result"]["questions"])
        return f"{seen} questions on the board: 1 answered and 1 skipped by HTTP, 1 by the time limit, 3 without asking"

    def check_customization(self) -> str:
        """Question-and-answer pairs of UFO's customization stand on a new board once."""
        original, dropped = self._both("board", qa_pairs=QA_PAIRS)
        same("board", original["result"], dropped["result"])
        run = Run()
        with self._three("drop-in", "qa", QA_PAIRS) as workers:
            read_ends(workers, run)
            workers.close()
        for end in run.ends:
            same("shared board", original["result"], end)
        return f"{len(QA_PAIRS)} pairs, once for three processes of a session"

    def check_fifty_steps(self) -> str:
        """Each step's prompt in three processes over one session equals the original's in one process."""
        original, dropped = self._original(), self._counted("drop-in")
        count = same("prompts", original.prompts, dropped.prompts)
        for end in dropped.ends:
            same("board at the end", original.ends[0], end)
        same("board on the server", original.board, self._server.board("checkout-drop-in"))
        same("complaints", complaints(original), complaints(dropped))
        remembered = mirrored(dropped, self._server.memories("checkout-drop-in"))
        images = len(original.board["screenshots"])
        size = max(len(prompt) for prompt in original.prompts)
        return (
            f"{count} prompts equal, {images} screenshots, the longest prompt {size:,} characters; "
            f"{remembered} memory items mirrored"
        )

    def check_trips(self) -> str:
        """The fifty steps take at most 2 requests a step, the ends of the processes included."""
        original = self._original()
        same("prompts of the shim", original.prompts, self._counted("shim").prompts)
        figures = [self._figures(board) for board in ("drop-in", "shim")]
        figures.append(f"original {milliseconds(original):.0f} ms a step")
        trips = len(self._trips["drop-in"]) / scene.STEPS
        if trips > TRIPS_MAX:
            raise HarnessFailed(f"{trips:.2f} trips a step are more than {TRIPS_MAX}: {'; '.join(figures)}")
        return "; ".join(figures)

    def check_outage(self) -> str:
        """With the server away for 20 s nothing is lost, the order is kept, no call and no event loop hangs."""
        returning: list[threading.Thread] = []
        turns_away = 0

        def before(turn: scene.Turn) -> None:
            nonlocal turns_away
            if returning and returning[-1].is_alive():
                turns_away += 1
                time.sleep(AWAY_PAUSE_SECONDS)
            if turn.step in AWAY_SECONDS:
                returning.append(threading.Thread(target=self._be_away, args=[AWAY_SECONDS[turn.step]]))
                returning[-1].start()

        with self._three("drop-in", "outage") as workers:
            try:
                run = run_steps(workers, scene.turns(), before)
            finally:
                for thread in returning:
                    thread.join()
            board = self._settled("checkout-outage", self._original().board)
            read_ends(workers, run)
            workers.close()
        displaced = order_kept(self._original(), board)
        own_writes_seen(self._original(), run)
        for end in run.ends:
            same("board and prompt of each process", run.ends[0], end)
        same("board of the first process and of the server", board, run.board)
        remembered = mirrored(run, self._server.memories("checkout-outage"))
        return (
            f"{sum(map(len, board.values()))} items and {remembered} of memories, none lost or doubled; "
            f"{len(returning)} kills, {turns_away} turns while away; {displaced} items in another order than in one "
            f"process, none of them within a process; {slowest(run)}"
        )

    def check_end_while_away(self) -> str:
        """Writes of a process that ends or is killed while the server is away reach it by a later process."""
        turns, half = scene.turns()[:6], 3
        original = self._original()
        expected = board_after(original, len(turns))
        directories = [workspace.prepare(self._checkout, self._scratch / name) for name in ("closed", "killed")]
        closed, killed = (Workers(dict.fromkeys(AGENTS, self._in_session(directory))) for directory in directories)
        with closed, killed:
            runs = [run_steps(workers, turns[:half]) for workers in (closed, killed)]
            self._server.kill()
            runs += [run_steps(workers, turns[half:]) for workers in (closed, killed)]
            start = time.monotonic()
            closed.close()
            seconds = time.monotonic() - start
        self._server.start()
        for first, second in zip(runs[:2], runs[2:], strict=True):
            same("prompts", original.prompts[: len(turns)], first.prompts + second.prompts)
        for directory in directories:
            with Workers({"host": self._in_session(directory)}) as later:
                later.all[0].greet()
                board = self._settled(f"checkout-{directory.name}", expected)
                same(f"board after a process was {directory.name}", expected, board)
                later.close()
        if seconds > EXIT_SECONDS_MAX:
            raise HarnessFailed(f"a process took {seconds:.1f} s to end")
        count = sum(map(len, expected.values()))
        return f"{count} items there after an end, which took {seconds:.1f} s, and after a kill; {slowest(*runs)}"

    def check_frozen(self) -> str:
        """A server that keeps its connections and answers nothing blocks no call until it goes on, either."""
        turns = scene.turns()[:8]
        original = self._original()
        expected = board_after(original, len(turns))
        directory = workspace.prepare(self._checkout, self._scratch / "frozen")
        thawing = threading.Timer(FROZEN_SECONDS, self._server.thaw)

        def before(turn: scene.Turn) -> None:
            if turn.step == FROZEN_FROM_STEP:
                self._server.freeze()
                thawing.start()

        with Workers(dict.fromkeys(AGENTS, self._in_session(directory))) as workers:
            try:
                run = run_steps(workers, turns, before)
            finally:
                if thawing.is_alive():
                    thawing.join()
            board = self._settled("checkout-frozen", expected)
            workers.close()
        same("prompts", original.prompts[: len(turns)], run.prompts)
        same("board", expected, board)
        return f"{len(run.prompts)} prompts equal, frozen for {FROZEN_SECONDS:g} s; {slowest(run)}"

    def _original(self) -> Run:
        """The fifty steps in one process over the original classes, run once."""
        if "original" not in self._fifty:
            directory = workspace.prepare(self._checkout, self._scratch / "fifty-original")
            with Workers(dict.fromkeys(AGENTS, self._start("original", directory))) as workers:
                run = run_steps(workers, scene.turns())
                read_ends(workers, run)
                workers.close()
            self._fifty["original"] = run
        return self._fifty["original"]

    def _counted(self, board: str) -> Run:
        """The fifty steps in three processes, run once; the trips counted are all but those of the last reads."""
        if board not in self._fifty:
            session = f"checkout-{board}"
            with self._three(board, board) as workers:
                run = run_steps(workers, scene.turns())
                trips = self._server.trips(session)
                read_ends(workers, run)
                before = len(self._server.trips(session))
                workers.close()
            self._trips[board] = trips + self._server.trips(session)[before:]
            self._fifty[board] = run
        return self._fifty[board]

    def _figures(self, board: str) -> str:
        run, trips = self._counted(board), self._trips[board]
        in_calls = 1000 * statistics.median(answer.board_seconds for answer in run.answers)
        routes = Counter(f"{trip.method} {trip.route.removeprefix('/v1/sessions/{session}')}" for trip in trips)
        listed = ", ".join(f"{count} {route}" for route, count in routes.most_common())
        return (
            f"{board} {len(trips) / scene.STEPS:.2f} trips, {in_calls:.1f} ms in calls, {milliseconds(run):.0f} ms "
            f"a step ({listed})"
        )

    def _both(self, what: str, **arguments: Any) -> list[dict[str, Any]]:
        """Runs one command over the original and over the drop-in, each in a process of its own."""
        with ThreadPoolExecutor() as pool:
            return list(pool.map(lambda board: self._one(board, what, {}, **arguments), ("original", "drop-in")))

    def _one(self, board: str, what: str, variables: dict[str, str], **arguments: Any) -> dict[str, Any]:
        name = f"{what}-{board}-{len(list(self._scratch.iterdir()))}"
        directory = workspace.prepare(self._checkout, self._scratch / name, arguments.pop("qa_pairs", None))
        with Workers({"host": self._start(board, directory, **variables)}) as workers:
            workers.all[0].greet()
            answer = workers.all[0].do(what, **arguments)
            workers.close()
        return {"result": answer.result, "prompts": answer.prompts}

    def _three(self, board: str, name: str, qa_pairs: list[dict[str, str]] | None = None) -> Workers:
        """Three processes, one for each agent, over one session and one log directory."""
        directory = workspace.prepare(self._checkout, self._scratch / name, qa_pairs)
        return Workers({agent: self._in_session(directory, board) for agent in AGENTS})

    def _in_session(self, directory: Path, board: str = "drop-in") -> Worker:
        return self._start(board, directory, BLACKBOARD_SESSION=f"checkout-{directory.name}")

    def _start(self, board: str, directory: Path, **variables: str) -> Worker:
        variables |= {"BLACKBOARD_URL": self._server.url, "BLACKBOARD_OUTBOX": str(directory / "outbox")}
        return Worker(self._checkout, directory, board, "logs/steps/", **variables)

    def _be_away(self, seconds: float) -> None:
        """Kills the server in the middle of a turn and starts it again."""
        time.sleep(KILL_AFTER_SECONDS)
        self._server.kill()
        time.sleep(seconds)
        self._server.start()

    def _settled(self, session: str, expected: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """Board of the server as soon as it has as many items as expected, or at the end of the time."""
        deadline = time.monotonic() + SETTLE_SECONDS
        while True:
            board = self._server.board(session)
            if time.monotonic() > deadline or all(len(board[log]) >= len(expected[log]) for log in LOGS):
                return board
            time.sleep(0.2)

    def _answer_two(self, session: str) -> None:
        """Answers the first question on the board and skips the second, as a person with curl does."""
        deadline = time.monotonic() + SETTLE_SECONDS
        for seq, answer in ((1, {"answer": ANSWERS[0]}), (2, {"skip": True})):
            while self._server.ask("GET", f"{session}/questions/{seq}") is None:
                if time.monotonic() > deadline:
                    raise HarnessFailed(f"question {seq} did not come within {SETTLE_SECONDS} s")
                time.sleep(0.05)
            self._server.ask("PUT", f"{session}/questions/{seq}/answer", answer)


def milliseconds(run: Run) -> float:
    """Median time of a step, everything included."""
    return 1000 * statistics.median(answer.seconds for answer in run.answers)


def slowest(*runs: Run) -> str:
    """Longest call and longest pause of the heartbeat; the check fails where one is too long."""
    name, seconds = max((call for run in runs for call in run.calls()), key=lambda call: call[1])
    gap = max(answer.gap for run in runs for answer in run.answers)
    figures = f"longest call {seconds:.2f} s ({name}), longest pause of the heartbeat {gap:.2f} s"
    if max(seconds, gap) > CALL_SECONDS_MAX:
        raise HarnessFailed(f"more than {CALL_SECONDS_MAX} s: {figures}")
    return figures


def main() -> int:
    """Reads the arguments, runs the checks in order, ends what it started."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--checkout", type=Path, required=True, help="directory of a UFO checkout, read only")
    parser.add_argument("--blackboard", type=Path, required=True, help="the server's executable")
    parser.add_argument("--only", action="append", metavar="CHECK", help="name of a check to run; may be repeated")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="checkout-", ignore_cleanup_errors=True) as scratch:
        server = Server(options.blackboard.resolve(), Path(scratch) / "server")
        try:
            return run_checks(Harness(options.checkout.resolve(), server, Path(scratch)), options.only)
        finally:
            server.stop()


def run_checks(harness: Harness, only: list[str] | None) -> int:
    """Runs the checks and prints a line each; the status is 1 after the first that fails."""
    checks: dict[str, Callable[[], str]] = {
        "session": harness.check_session,
        "session-end": harness.check_session_end,
        "asker": harness.check_asker,
        "asker-elsewhere": harness.check_asker_elsewhere,
        "customization": harness.check_customization,
        "fifty-steps": harness.check_fifty_steps,
        "trips": harness.check_trips,
        "outage": harness.check_outage,
        "end-while-away": harness.check_end_while_away,
        "frozen": harness.check_frozen,
    }
    if unknown := set(only or ()) - checks.keys():
        print(f"no check is called {', '.join(unknown)}; there are {', '.join(checks)}", file=sys.stderr)
        return 2
    for name, check in checks.items():
        if only and name not in only:
            continue
        start = time.monotonic()
        try:
            print(f"ok      {name}: {check()} ({time.monotonic() - start:.1f} s)", flush=True)
        except HarnessFailed as failure:
            print(f"failed  {name}: {failure}", flush=True)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
