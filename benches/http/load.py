"""Load on a contender by wrk, and the parsed results."""

import json
import os
import subprocess
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import counters
import posts
from contenders import HERE, Running

ITEM_BYTES = 800
PROMPT_ITEMS = 1000
THREADS_MAX = 2


class Failed(Exception):
    """Something was answered that should not have been."""


@dataclass
class Sample:
    """What one contender did in one turn."""

    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_seconds_per_1000: float
    resident_mib: float
    # Requests that broke off, or took longer than wrk waits.
    broken: int
    # What perf counted for each request, by event.
    counted: dict[str, float] = field(default_factory=dict)


def item(step: int) -> bytes:
    """A step of an agent, as UFO's trajectories have them, in exactly ITEM_BYTES bytes."""
    values = {
        "step": step,
        "round": 3,
        "agent": "AppAgent",
        "subtask": "Fill in the totals of the second quarter and check them against the invoices",
        "action": [
            {
                "function": "set_edit_text",
                "args": {"control_label": "37", "text": "=SUM(C2:C118)", "clear": True},
                "status": "success",
            }
        ],
        "results": "The cell C119 shows 48,211.50 €. The status bar says “Ready”.",
        "status": "CONTINUE",
        "cost": 0.01342,
        "time": 4.218,
        "application": "EXCEL.EXE",
        "thought": "",
    }
    thought = (
        "The sum is there, but the invoice of May is still missing in the list. I should look for it in "
        "the second sheet, add its amount, and compare the total with the one in the mail again before "
        "I report that the subtask is finished. "
    )
    short = ITEM_BYTES - len(encoded(values))
    values["thought"] = (thought * 4)[:short]
    text = encoded(values)
    if len(text) != ITEM_BYTES:
        raise Failed(f"an item has {len(text)} bytes")
    return text


def encoded(values: dict) -> bytes:
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def wrk(running: Running, request: list, connections: int, seconds: float) -> tuple:
    """Sends that request over and over: answers, seconds, p50 and p99 in milliseconds, and what broke off."""
    method, path, *rest = request
    threads = min(THREADS_MAX, os.cpu_count() or 1)
    command = ["wrk", f"-t{threads}", f"-c{connections}", f"-d{seconds}s", "-s", HERE / "load.lua"]
    command += [f"http://127.0.0.1:{running.port}{path}", "--", method, *rest]
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=True)
    results = [line.split()[1:] for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not results:
        raise Failed(f"wrk said nothing of use:\n{done.stdout}{done.stderr}")
    requests, microseconds, p50, p99, broken, refused = map(int, results[0])
    if refused:
        raise Failed(f"{method} {path}: {refused} of {requests} answers are refusals")
    return requests, microseconds / 1e6, p50 / 1000, p99 / 1000, broken


def paced(running: Running, request: list, connections: int, seconds: float, per_second: float) -> tuple:
    """Sends that request so many times a second, and says the same as `wrk`."""
    method, path, body, _ = request
    client = posts.http(method, path, Path(body).read_bytes())
    try:
        written = posts.write(running.port, connections, client, seconds=seconds, per_second=per_second)
    except (posts.Failed, OSError) as failure:
        raise Failed(f"{method} {path}: {failure}") from failure
    return len(written.times), written.seconds, written.percentile_ms(0.5), written.percentile_ms(0.99), 0


def sample(
    running: Running,
    request: list,
    connections: int,
    seconds: float,
    warm_up: float,
    *,
    per_second: float | None = None,
    catch_up: Callable[[Running], None] | None = None,
    counts: bool = False,
) -> Sample:
    """Loads it for so long, after a warm-up that does not count; at full rate, or with so many requests a second. With
    `catch_up` the processor time is that until the work that answers leave behind is done."""

    def loaded(seconds: float) -> tuple:
        if per_second is None:
            return wrk(running, request, connections, seconds)
        return paced(running, request, connections, seconds, per_second)

    def caught_up():
        if catch_up is not None:
            catch_up(running)

    loaded(warm_up)
    caught_up()
    before, cpu = running.items(), running.cpu_seconds()
    with counters.counting(running.pids) if counts else nullcontext({}) as counted:
        requests, took, p50, p99, broken = loaded(seconds)
    if requests == 0:
        raise Failed(f"{request[0]} {request[1]}: no answer within {seconds} s, {broken} broke off")
    caught_up()
    cpu = running.cpu_seconds() - cpu
    after = running.items()
    # Whoever says that he has written something must have it.
    if request[0] != "GET" and before is not None and after - before < requests:
        raise Failed(f"{requests} appends were answered, {after - before} are there")
    each = {event: count / requests for event, count in counted.items()}
    return Sample(requests / took, p50, p99, cpu / requests * 1000, running.resident_mib(), broken, each)


def append(running: Running, folder: Path) -> list:
    """The request that appends an item; one is tried, and must be answered with success."""
    method, path = running.append
    body = folder / "item.json"
    body.write_bytes(item(1))
    headers = {"Content-Type": "application/json"}
    status, _, answer = running.request(method, path, body.read_bytes(), headers)
    if status not in (200, 201):
        raise Failed(f"{method} {path}: {status} {answer[:200]!r}")
    return [method, path, body, "Content-Type: application/json"]


def fill(running: Running):
    """Appends PROMPT_ITEMS items to a board that has none."""
    method, path = running.append
    for step in range(1, PROMPT_ITEMS + 1):
        status, _, answer = running.request(method, path, item(step), {"Content-Type": "application/json"})
        if status != 201:
            raise Failed(f"{method} {path}: {status} {answer[:200]!r}")
