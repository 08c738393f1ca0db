#!/usr/bin/env python3
"""Attacks by one malicious client, and their effect on another client.

    benches/fairness.py [--server PATH] [--seconds S] [--only NAME,...] [--save FILE] [--before FILE]

Each attack gets a new server on loopback. The attacker has one token with the scopes read and write. The victim has
another token and a session of its own, where it appends, reads a page and asks for a prompt in turn, at most 80
requests a second; where the attack is on a pool, the victim uses that pool too. The victim is measured for S seconds
(5) beside the attack, and for as long beside processes that send nothing but use as much processor time as attacker and
server used for the attack. Every client has its own processes. An answer that makes no progress for 20 s counts as 20 s
and as a failure.

Resident memory is the peak during the attack less the memory before it. Reports figures without judging them: those
beyond the aims (p99 at most 5 times the control's, 512 MiB, no 503) are bold. `--save` writes the figures, `--before`
prints those of an earlier run beside them. Exits with 1 if the harness itself fails, for example if the server does not
understand an attack.
"""

import argparse
import collections
import contextlib
import dataclasses
import gzip
import http.client
import itertools
import json
import math
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from attackers import HARNESS, Beside, Request, asks, attack, burn, floods, idles, never_reads, sends_slowly
from board_server import Client, Server, picture

RATIO_MAX, RSS_MIB_MAX = 5, 512
ANSWER_S_MAX = 20
WARM_S, LEAD_S = 0.5, 2.0
# After an attack, until the server is quiet again.
SETTLED_S_MAX, SETTLED_CORES = 30, 0.05
# Below the 100 requests a second that a token has.
PACE_S = 1 / 80
SESSION = "/v1/sessions/victim"
ITEM = b'{"step":1,"thought":"Open the spreadsheet and look at its first sheet."}'
REVISIONS = 300
# Statuses with which the harness would be at fault; a bomb may be 413 or 422.
NOT_UNDERSTOOD = {"400", "401", "403", "404", "405", "409", "415"}

# What the victim does: method, path and body, with another number each time for {n}.
OPERATIONS = {
    "append": ("POST", f"{SESSION}/trajectories", ITEM),
    "page": ("GET", f"{SESSION}/trajectories?limit=100", None),
    "prompt": ("GET", f"{SESSION}/prompt?latest=50", None),
    "archive": ("GET", f"{SESSION}/archive", None),
    "past": ("GET", f"{SESSION}/trajectories?limit=10&at={{n}}", None),
    "fork": ("POST", f"{SESSION}/fork", b'{"to":"victim-fork-{n}"}'),
    "thumbnail": ("GET", f"{SESSION}/screenshots/1/image?max_px={{n}}", None),
    "search": ("GET", "/v1/search?q=spreadsheet+sheet&session=victim&limit=5", None),
    "board": ("PUT", f"{SESSION}-board/blackboard", b'{"questions":[],"requests":[{"step":{n}}]}'),
}
ALWAYS = ["append", "page", "prompt"]


def victim(pipe, address, token, operations, comes_anew):
    """The process of a victim: for each span of time that it is given, what each operation took, in seconds, and what
    was refused, by status."""
    source = ("127.0.0.2", 0) if comes_anew else None
    connection = http.client.HTTPConnection(*address, timeout=ANSWER_S_MAX, source_address=source)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    turns = itertools.cycle(operations)
    numbers = {name: itertools.count(2) for name in operations}
    while (seconds := pipe.recv()) > 0:
        times, failures = {name: [] for name in operations}, collections.Counter()
        until = time.monotonic() + seconds
        while (begun := time.monotonic()) < until:
            name = next(turns)
            took, failure = asked(connection, OPERATIONS[name], next(numbers[name]), headers)
            # A refusal is quick, and no answer.
            times[name].extend([] if failure and failure.isdigit() else [took])
            failures.update([failure] if failure else [])
            if comes_anew:
                connection.close()
            time.sleep(max(0, begun + PACE_S - time.monotonic()))
        pipe.send((times, dict(failures)))


def asked(connection, operation, number, headers):
    """How long an operation took, and how it failed, if it did."""
    method, path, body = operation
    body = body and body.replace(b"{n}", b"%d" % number)
    begun = time.monotonic()
    try:
        connection.request(method, path.replace("{n}", str(number)), body, headers)
        answer = connection.getresponse()
        answer.read()
        return time.monotonic() - begun, None if answer.status < 300 else str(answer.status)
    except TimeoutError:
        connection.close()
        return ANSWER_S_MAX, "no answer"
    except (OSError, http.client.HTTPException):
        connection.close()
        return time.monotonic() - begun, "connection lost"


class Prepared(Server):
    """A server with tokens, and the victim's session."""

    def __init__(self, path, arguments):
        super().__init__(path, arguments=arguments)
        # The first token must be an admin's.
        self.tokens = {"preparer": self.token("preparer", "--scopes", "admin")}
        self.tokens |= {name: self.token(name) for name in ("attacker", "victim")}

    def token(self, name, *arguments):
        command = [self.path, "token", "create", "--name", name, "--data", self.data, "--create", *arguments]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout.strip()

    def ask(self, method, path, body=None, token="preparer", **headers):
        """As the preparer, who waits where it asks too often."""
        client = Client(self.address, ANSWER_S_MAX * 3)
        while True:
            answer = client.ask(method, path, body, Authorization=f"Bearer {self.tokens[token]}", **headers)
            if answer.status != 429:
                break
            time.sleep(0.05)
        client.close()
        if answer.status >= 300:
            sys.exit(f"{method} {path}: {answer.status} {answer.body[:500]!r}")
        return answer

    def prepare_victim(self):
        for _ in range(20):
            self.ask("POST", f"{SESSION}/trajectories", [json.loads(ITEM)] * 10)
        self.ask("POST", f"{SESSION}/screenshots", picture(640, 400, os.urandom(640 * 400 * 3)), Content_Type="image/png")

    def resident_mib(self, member):
        with open(f"/proc/{self.process.pid}/status", encoding="ascii") as status:
            return int(re.search(rf"{member}:\s+(\d+) kB", status.read())[1]) / 1024

    def forget_peak(self):
        with open(f"/proc/{self.process.pid}/clear_refs", "w", encoding="ascii") as refs:
            refs.write("5")


def listed(server):
    """Three hundred sessions whose settings make a page of 48 MB."""
    keys = [f"{n:03}" + "k" * 197 for n in range(800)]
    for n in range(300):
        server.ask("PUT", f"/v1/sessions/large-{n}", {"settings": {"profiles": {"large": {"keys": keys}}}})


def text():
    """A million letters in words, in an order that a compressor has to look for."""
    words = [f"w{n * 7919 % 100_003:05}" for n in range(4096)]
    noise = os.urandom(160_000)
    return " ".join(words[(a << 4 | b >> 4) & 4095] for a, b in zip(noise, noise[1:]))[:1_000_000]


def large(server, megabytes=196):
    """A board of so many megabytes, in items of one."""
    line = text()
    for first in range(0, megabytes, 7):
        items = [{"step": n, "text": line[n * 7 :] + line[: n * 7]} for n in range(first, min(first + 7, megabytes))]
        server.ask("POST", "/v1/sessions/large/trajectories", items)


def past(server):
    """A board of many commits, none of them small."""
    line = text()[:100_000]
    for n in range(REVISIONS):
        server.ask("POST", "/v1/sessions/large/trajectories", {"step": n, "text": line})
    for _ in range(REVISIONS):
        server.ask("POST", f"{SESSION}/trajectories", ITEM)


def screenshot(server):
    side = 2400
    image = picture(side, side, os.urandom(side * side * 3))
    server.ask("POST", "/v1/sessions/large/screenshots", image, Content_Type="image/png")


def bomb(bytes_, around):
    """Spaces between the two halves of a body, as gzip."""
    head, tail = around
    return gzip.compress(head + b" " * bytes_ + tail, 9)


def state_body():
    members = ",".join(f'"member-{n}":{{"ready":{n},"device":"linux"}}' for n in range(135_000))
    return b'{"number":{n},' + members.encode() + b"}"


def polls(server):
    path = "/v1/sessions?limit=1000&prefix=large-"
    tag = server.ask("GET", path, token="attacker").headers["ETag"]
    return [Request("GET", path + "&wait=60s", headers={"If-None-Match": tag})]


def states(count):
    body = state_body()
    return [Request("PUT", f"/v1/sessions/state-{n}/state", body) for n in range(count)]


def messages(server):
    """Calls of MCP with a megabyte of members, of a tool and of none, by a token that reads sessions that do not exist."""
    server.tokens["attacker"] = server.token("reader", "--scopes", "read", "--sessions", "none-*")
    members = ",".join(f'"member-{n}":{n}' for n in range(50_000))
    head = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"%s","arguments":{%s}}}'
    return [Request("POST", "/mcp", (head % (tool, members)).encode()) for tool in ("no_such_tool", "read_log")]


def searches(_server):
    """Searches for many words at once, in long texts."""
    words = "+".join(f"w{n}*" for n in range(10, 42))
    return [Request("GET", f"/v1/search?q={words}&limit=100&after={{n}}", first=0, turn=50)]


GZIP = {"Content-Encoding": "gzip"}
LARGE = "/v1/sessions/large"
SLOWLY = (8 << 10, 0.5)
LIST = Request("GET", "/v1/sessions?limit=1000")
SEARCH = f"{LARGE}/trajectories?contains=nowhere"


@dataclasses.dataclass
class Case:
    """An attack: what it needs, who sends what, and what the victim does besides."""

    prepare: Callable[[Prepared], None]
    kind: Callable[..., None]
    connections: int
    requests: Callable[[Prepared], list[Request]]
    arguments: tuple = ()
    does: str | None = None
    comes_anew: bool = False
    serve: tuple = ()


class Cores:
    """How many cores these processes took together while the block ran; one that has died took none."""

    def __init__(self, *pids):
        self.pids, self.number = pids, 0.0

    def __enter__(self):
        self.begun, self.before = time.monotonic(), self.taken()
        return self

    def __exit__(self, *_):
        self.number = max(0.0, self.taken() - self.before) / (time.monotonic() - self.begun)

    def taken(self):
        return sum(map(seconds_of, self.pids))


def seconds_of(pid):
    """Of the processor, by that process since it began."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
            user, system = stat.read().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def nothing(_server):
    """No preparation."""


UNLIMITED = ("--token-rate", "0")
# What boards take within the budget is the operator's choice, so theirs is below the aim.
BUDGET = ("--memory-budget", "256MiB")
CASES = {
    "list": Case(listed, asks, 4, lambda _: [LIST]),
    "list-unread": Case(listed, never_reads, 60, lambda _: [LIST]),
    "list-polls": Case(listed, asks, 20, polls),
    "contains": Case(large, asks, 30, lambda _: [
        Request("GET", SEARCH), Request("GET", SEARCH, headers={"Accept": "application/x-ndjson"})]),
    "gzip-readers": Case(large, asks, 8, lambda _: [
        Request("GET", f"{LARGE}/blackboard", headers={"Accept-Encoding": "gzip"})]),
    "bomb-250M": Case(nothing, asks, 4, lambda _: [Request(
        "PUT", f"{LARGE}/blackboard", bomb(250 << 20, (b'{"questions":[', b"]}")), GZIP)]),
    "bombs-8K": Case(nothing, asks, 32, lambda _: [Request(
        "POST", f"{LARGE}/trajectories", bomb((8 << 20) - 4, (b"[", b"]")), GZIP)]),
    "states-12": Case(nothing, asks, 12, lambda _: states(12), serve=BUDGET),
    "states-2": Case(nothing, asks, 2, lambda _: states(2)),
    "archives": Case(lambda server: large(server, 42), asks, 68, lambda _: [
        Request("GET", f"{LARGE}/archive")], SLOWLY, "archive"),
    "slow-bodies": Case(nothing, sends_slowly, 2, lambda _: [Request(
        "PUT", f"{LARGE}/blackboard", b'{"questions":[', {"Content-Length": 256 << 20})], (256 << 20, 20, 1), "board"),
    "past": Case(past, asks, 68, lambda _: [
        Request("GET", f"{LARGE}/trajectories?limit=10&at={{n}}", first=2, turn=REVISIONS - 2)], does="past"),
    "forks": Case(lambda server: large(server, 7), asks, 68, lambda _: [
        Request("POST", f"{LARGE}/fork", b'{"to":"fork-{n}"}')], does="fork"),
    "thumbnails": Case(screenshot, asks, 68, lambda _: [
        Request("GET", f"{LARGE}/screenshots/1/image?max_px={{n}}", first=100, turn=2000)], does="thumbnail"),
    "idle": Case(nothing, idles, 300, lambda _: [], comes_anew=True, serve=("--connections-max", "300")),
    "mcp-messages": Case(nothing, asks, 4, messages, serve=UNLIMITED),
    "searches": Case(large, asks, 8, searches, does="search", serve=UNLIMITED),
    "flood-reads": Case(nothing, floods, 200, lambda _: [
        Request("GET", "/v1/sessions?limit=1")], (16,), serve=UNLIMITED),
    "flood-writes": Case(nothing, floods, 200, lambda _: [
        Request("POST", f"{LARGE}/trajectories", ITEM)], (16,), serve=UNLIMITED),
}


def percentile(part, times):
    """That part of the times is at most so long, in milliseconds."""
    return sorted(times)[math.ceil(len(times) * part) - 1] * 1e3


def compared(control, beside):
    """For each operation that was answered in both spans, and for all together: p50 and p99 in milliseconds, and by how
    much p99 grew."""
    control, beside = ({**times, "all": sum(times.values(), [])} for times in (control, beside))
    return {
        name: {
            "control": [percentile(0.5, control[name]), percentile(0.99, control[name])],
            "beside": [percentile(0.5, beside[name]), percentile(0.99, beside[name])],
            "ratio": percentile(0.99, beside[name]) / percentile(0.99, control[name]),
        }
        for name in control
        if control[name] and beside[name]
    }


def measure(path, case, seconds):
    """One attack, and what the victim noticed of it."""
    with Prepared(path, case.serve) as server:
        server.prepare_victim()
        case.prepare(server)
        requests = case.requests(server)
        operations = [*ALWAYS, *([case.does] if case.does else [])]
        told = (server.address, server.tokens["attacker"], case.kind, case.connections, requests, case.arguments)
        with Beside(victim, server.address, server.tokens["victim"], operations, case.comes_anew) as other:
            other.asked(WARM_S)
            with Cores(server.process.pid) as alone:
                _, refused = other.asked(seconds)
            if refused:
                sys.exit(f"the victim was refused without an attack: {refused}")
            server.forget_peak()
            idle_mib = server.resident_mib("VmRSS")
            with Beside(attack, *told) as attacker:
                time.sleep(LEAD_S)
                with Cores(server.process.pid, attacker.process.pid) as attacked:
                    beside, failures = other.asked(seconds)
                answers = attacker.asked("answers")
            # Unless it has died of the attack.
            dead = server.process.poll() is not None
            rss_mib = None if dead else server.resident_mib("VmHWM") - idle_mib
            cores = max(0.0, attacked.number - alone.number)
            control = {} if dead else controlled(server, other, cores, seconds)
        server.kill()
    given = answers.keys() | failures.keys()
    if failed := (NOT_UNDERSTOOD & given) | {answer for answer in given if answer.startswith(HARNESS)}:
        sys.exit(f"refused for another reason than its share: {sorted(failed)} of {answers} and {failures}")
    operations = compared(control, beside)
    return {"operations": operations, "cores": cores, "rss_mib": rss_mib, "failures": failures, "answers": answers}


def controlled(server, other, cores, seconds):
    """What the victim's operations take beside as many cores that are burned, once the server has done with the attack."""
    until = time.monotonic() + SETTLED_S_MAX
    while time.monotonic() < until:
        with Cores(server.process.pid) as left:
            time.sleep(1)
        if left.number < SETTLED_CORES:
            break
    with contextlib.ExitStack() as burning:
        for n in range(math.ceil(cores)):
            burning.enter_context(Beside(burn, min(1.0, cores - n)))
        other.asked(WARM_S)
        control, failures = other.asked(seconds)
    if failures:
        sys.exit(f"the victim was refused after the attack: {failures}")
    return control


def beyond(text, is_beyond):
    return f"**{text}**" if is_beyond else text


def cells(figures):
    """What the table shows of an attack."""
    by_name = dict(figures["operations"])
    of_all = by_name.pop("all", {"control": [0, 0], "beside": [0, 0], "ratio": math.inf})
    name, worst = max(by_name.items(), key=lambda operation: operation[1]["ratio"], default=("none", of_all))
    failures = dict(figures["failures"])
    refused, rss = failures.pop("503", 0), figures["rss_mib"]
    return [
        f"{figures['cores']:.1f}",
        f"{of_all['control'][1]:.0f} / {of_all['beside'][1]:.0f}",
        beyond(f"{of_all['ratio']:.1f}x", of_all["ratio"] > RATIO_MAX),
        beyond(f"{name} {worst['ratio']:.1f}x", worst["ratio"] > RATIO_MAX),
        "**dead**" if rss is None else beyond(f"{rss:.0f}", rss > RSS_MIB_MAX),
        beyond(str(refused), refused > 0),
        counted(failures),
    ]


def counted(by_status):
    return ", ".join(f"{status}: {count}" for status, count in sorted(by_status.items())) or "0"


def row(name, now, before):
    """A row of the table; with what was before in each cell, where that is known."""
    both = zip(cells(before), cells(now)) if before else ((None, cell) for cell in cells(now))
    shown = [cell if old in (None, cell) else f"{old} → {cell}" for old, cell in both]
    return f"| {name} | {' | '.join(shown)} | {counted(now['answers'])} |"


def details(results):
    print("\n| attack | operation | p50 control | p50 beside | p99 control | p99 beside | ratio |")
    print("| --- | --- | --: | --: | --: | --: | --: |")
    for attack_name, figures in results.items():
        for name, of in figures["operations"].items():
            (p50, p99), (p50_beside, p99_beside) = of["control"], of["beside"]
            milliseconds = " | ".join(f"{ms:.1f}" for ms in (p50, p50_beside, p99, p99_beside))
            print(f"| {attack_name} | {name} | {milliseconds} | {of['ratio']:.1f}x |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--only", default="", help=", ".join(CASES))
    parser.add_argument("--save", type=pathlib.Path)
    parser.add_argument("--before", type=pathlib.Path)
    arguments = parser.parse_args()
    only = list(filter(None, arguments.only.split(","))) or list(CASES)
    if unknown := set(only) - CASES.keys():
        parser.error(f"no such attack: {', '.join(sorted(unknown))}; there are {', '.join(CASES)}")
    # So that whatever was started ends here as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by a signal"))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    before = json.loads(arguments.before.read_text()) if arguments.before else {}
    results = {}
    print("| attack | cores | p99 control / beside, ms | ratio | worst operation | MiB above idle | 503s | other failures | "
          "attack's answers |\n| --- | --: | --: | --: | --- | --: | --: | --- | --- |", flush=True)
    for name in only:
        results[name] = measure(arguments.server, CASES[name], arguments.seconds)
        print(row(name, results[name], before.get(name)), flush=True)
        if arguments.save:
            arguments.save.write_text(json.dumps(results, indent=1))
    details(results)


if __name__ == "__main__":
    main()
