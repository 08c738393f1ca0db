#!/usr/bin/env python3
"""Long runs of agents at half of the machine's load: promises, latency, memory, files, threads and disk.

    benches/soak.py [--server PATH] [--minutes N] [--agents N] [--away-minutes N]

Starts the server in a directory of its own, on loopback. Agents work in shared sessions that keep a part of their history,
and in sessions of their own that they delete after some steps: they append steps and memories, take screenshots, ask for
prompts within a budget and for thumbnails, claim requests, ask and answer questions, and change the state. Beside them go
watchers that come and go and must see each commit once and in order, exports, imports, forks, and backups that are checked.

The last tenth of the time is compared with the first: each operation's median, and the p99 of all. Resident memory, the
gauge, open files, threads and the disk are compared with the second tenth, less 1 KiB of memory and of disk for each session
deleted meanwhile, whose name the server retains; the share of the processors that the server and all together took is
printed. At the end all sessions are deleted while 10 writes a second go on, and the disk must come back within
--away-minutes (10). Exits with 1 where a promise was broken: an answer of 500 or more, an error in the log, an
export that was cut, an event that was missed or came twice, a backup that is not sound, a disk that does not come back, a
median that grew to more than 1.5 times, a p99 of all to more than 1.2, or memory, files, threads or the disk to more than
1.2.
"""

import argparse
import collections
import http.client
import json
import os
import pathlib
import random
import re
import shutil
import statistics
import sys
import threading
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server, picture

SHARED = 6
STEPS_OF_A_TASK = 60
STEP_REST_S = 0.35
# How long a watcher stays, and how long it is away.
WATCH_S = (5, 60)
AWAY_S = (0, 5)
WINDOWS = 10
MEDIAN_GROWTH_MAX = 1.5
P99_GROWTH_MAX = 1.2
LEVEL_GROWTH_MAX = 1.2
# A median of so few requests says nothing.
COUNTED_MIN = 10
TRICKLE_PER_S = 10
# The database of an empty store with its log, and what the trickle itself takes.
DISK_LEFT_MAX = 48 << 20
# A deleted session leaves its name and last revision for 30 days: what one takes in memory and on the disk.
NAME_BYTES_MAX = 1 << 10
# A session is as large after two minutes as after thirty: what takes longer then has another cause. The images of a
# session stay for an hour, so the shared ones, which are never deleted, see the same screens again.
ITEMS_MAX = {"trajectories": 400, "requests": 100, "questions": 100, "screenshots": 20, "memory": 24}
SETTINGS = {"settings": {"history": 400, "max_items": ITEMS_MAX, "history_keys": ["step", "action", "result"]}}
SCREENS = 24
WORDS = "open close read write click scroll type find save copy paste menu field button sheet cell row total".split()


Sample = collections.namedtuple("Sample", "seconds resident gauge disk files threads deleted")


class Soak:
    """The server, what was measured, and what was broken."""

    def __init__(self, server, minutes, agents):
        self.server, self.seconds, self.agents = server, minutes * 60, agents
        self.begun = time.monotonic()
        self.lock = threading.Lock()
        self.times = collections.defaultdict(lambda: [[] for _ in range(WINDOWS)])
        self.counts, self.broken, self.samples = collections.Counter(), [], []
        self.ended = threading.Event()
        rng = random.Random(0)
        self.screens = [screen(rng) for _ in range(SCREENS)]

    def elapsed(self):
        return time.monotonic() - self.begun

    def note(self, name, begun, answer, allowed):
        took = time.monotonic() - begun
        window = min(WINDOWS - 1, int((begun - self.begun) * WINDOWS / self.seconds))
        with self.lock:
            self.times[name][window].append(took)
            self.counts[name] += 1
        if answer.status not in allowed:
            self.fail(f"{name} is answered {answer.status} {answer.body[:300]!r}")

    def fail(self, why):
        with self.lock:
            self.broken.append(f"{self.elapsed():.0f} s: {why}")
            if len(self.broken) <= 20:
                print(f"BROKEN {self.broken[-1]}", flush=True)

    def ask(self, client, name, method, path, body=None, allowed=(200, 201), **headers):
        begun = time.monotonic()
        answer = client.ask(method, path, body, **headers)
        self.note(name, begun, answer, allowed)
        return answer

    def forever(self, work, *arguments):
        """A thread that works until the end; a fault of its own is a broken promise too."""

        def run():
            try:
                work(*arguments)
            except Exception:  # pylint: disable=broad-except
                self.fail(traceback.format_exc(limit=3))

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        return thread


def words(rng, count):
    return " ".join(rng.choices(WORDS, k=count))


def screen(rng):
    """A picture that no other is like."""
    return picture(160, 120, rng.randbytes(160 * 120 * 3))


def agent(soak, number):
    """Steps of one agent, in a shared session and in one of its own."""
    rng, client = random.Random(number), soak.server.client()
    name, shared = f"Agent{number}", f"/v1/sessions/shared-{number % SHARED}"
    own, step = None, 0
    while not soak.ended.is_set():
        if step % STEPS_OF_A_TASK == 0:
            if own:
                soak.ask(client, "delete session", "DELETE", own)
            own = f"/v1/sessions/task-{number}-{step}"
            soak.ask(client, "create session", "PUT", own, {**SETTINGS, "labels": {"agent": name}})
        step += 1
        act(soak, client, rng, name, rng.choice([shared, own]), step)
        soak.ended.wait(STEP_REST_S * rng.uniform(0.5, 1.5))


def act(soak, client, rng, name, session, step):
    """One step: what an agent does each time, and what it does now and then."""
    item = {
        "step": step, "agent": name, "thought": words(rng, 60), "action": words(rng, 12), "result": words(rng, 20),
        "cost": 0.0125, "status": rng.choice(["CONTINUE", "FINISH", "FAIL"]),
    }
    ask = lambda *arguments, **more: soak.ask(client, *arguments, X_Agent_ID=name, **more)
    ask("append step", "POST", f"{session}/trajectories", item)
    ask("append memory", "POST", f"{session}/agents/{name}/memory", item)
    ask("prompt in a budget", "GET", f"{session}/prompt?max_tokens=6000&screenshots=2&max_px=256")
    if step % 5 == 0:
        image = rng.choice(soak.screens) if "shared" in session else screen(rng)
        made = ask("append screenshot", "POST", f"{session}/screenshots?metadata=%22{step}%22", image,
                   Content_Type="image/png")
        if made.status == 201 and made.json()["entries"]:
            seq = made.json()["entries"][0]["seq"]
            ask("thumbnail", "GET", f"{session}/screenshots/{seq}/image?max_px=64", allowed=(200, 404))
    if step % 7 == 0:
        ask("markdown", "GET", f"{session}/prompt?format=markdown&max_tokens=6000&screenshots=1")
        ask("state add", "PATCH", f"{session}/state/steps", {"add": 1})
        ask("page of a log", "GET", f"{session}/trajectories?latest=20&status=FAIL")
    if step % 11 == 0:
        posted = ask("append request", "POST", f"{session}/requests", {"request": words(rng, 10)})
        seq = posted.json()["entries"][0]["seq"]
        ask("claim", "PUT", f"{session}/requests/{seq}/claim", {"ttl": "5s"}, allowed=(200, 201, 404, 409))
        ask("done", "PUT", f"{session}/requests/{seq}/done", {"result": "ok"}, allowed=(200, 404, 409, 422))
    if step % 13 == 0:
        asked = ask("ask", "POST", f"{session}/questions?expires=20s&default=yes", {"question": words(rng, 8)})
        if step % 2:
            seq = asked.json()["entries"][0]["seq"]
            ask("answer", "PUT", f"{session}/questions/{seq}/answer", {"answer": "no"}, allowed=(200, 404, 409))
        ask("inbox", "GET", "/v1/questions?limit=20")
        ask("list by label", "GET", f"/v1/sessions?label=agent:{name}")
        ask("transaction", "POST", f"{session}/transactions",
            {"then": [{"put": f"agents/{name}", "value": step}, {"append": "trajectories", "item": item}]})


def watcher(soak, number):
    """Follows a shared session, and sees each revision once and in order."""
    path, last, rng = f"/v1/sessions/shared-{number % SHARED}/events", None, random.Random(f"watcher {number}")
    while not soak.ended.wait(rng.uniform(*AWAY_S)):
        connection = http.client.HTTPConnection(*soak.server.address, timeout=40)
        headers = {"Accept": "text/event-stream"}
        if last is not None:
            headers["Last-Event-ID"] = str(last)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        if answer.status != 200:
            soak.fail(f"events are answered {answer.status} {answer.read()[:200]!r}")
            return
        last = follow(soak, answer, last, time.monotonic() + rng.uniform(*WATCH_S))
        connection.close()


def follow(soak, answer, last, end):
    """Reads frames until that time or the stream's end; the last revision seen."""
    event = data = None
    while not soak.ended.is_set():
        if time.monotonic() > end and event is None and data is None:
            return last
        line = answer.readline()
        if not line:
            return last
        line = line.decode().rstrip("\n")
        if line.startswith("event: "):
            event = line[7:]
        elif line.startswith("data: "):
            data = line[6:]
        elif line.startswith("id: "):
            seen = int(line[4:])
        elif not line:
            if event == "resync":
                soak.fail("a watcher that keeps up is told to begin again")
                last = json.loads(data).get("revision", last)
            elif data is not None and event is not None:
                soak.counts["events"] += 1
                if last is not None and seen != last + 1:
                    soak.fail(f"after revision {last} a watcher saw {seen}")
                last = seen
            elif data is None and last is None:
                last = seen
            event = data = None
    return last


def exporter(soak):
    """Archives of shared sessions, whole, and some of them in again; a fork now and then."""
    rng, client, count = random.Random(1), soak.server.client(120), 0
    while not soak.ended.is_set():
        session = f"/v1/sessions/shared-{rng.randrange(SHARED)}"
        begun = time.monotonic()
        try:
            answer = client.ask("GET", f"{session}/archive")
        except (OSError, http.client.HTTPException) as error:
            soak.fail(f"an export was cut: {error!r}")
            continue
        soak.note("export", begun, answer, (200,))
        lines = answer.body.splitlines()
        if answer.status == 200 and (not answer.body.endswith(b"\n") or not all(map(json.loads, lines))):
            soak.fail("an export ends within a line")
        count += 1
        if count % 6 == 0:
            copy = f"/v1/sessions/copy-{count}"
            soak.ask(client, "import", "PUT", f"{copy}/archive", answer.body, Content_Type="application/x-ndjson")
            soak.ask(client, "delete session", "DELETE", copy)
        if count % 6 == 3:
            soak.ask(client, "fork", "POST", f"{session}/fork", {"to": f"fork-{count}"})
            soak.ask(client, "delete session", "DELETE", f"/v1/sessions/fork-{count}")
        soak.ended.wait(5)


def backups(soak):
    """A backup every two minutes, and a check of it."""
    count = 0
    while not soak.ended.wait(min(120, soak.seconds / 8)):
        to = os.path.join(soak.server.home.name, f"backup-{count}")
        begun = time.monotonic()
        made = soak.server.run("backup", "--to", to)
        with soak.lock:
            soak.counts["backup"] += 1
        if made.returncode != 0:
            soak.fail(f"backup: {made.stdout}{made.stderr}")
            continue
        copy = Server(soak.server.path, to)
        checked = copy.run("check")
        if checked.returncode != 0:
            soak.fail(f"a backup is not sound: {checked.stdout}{checked.stderr}")
        print(f"{soak.elapsed():5.0f} s  backup {count} of {size(to) >> 20} MiB and its check: "
              f"{time.monotonic() - begun:.1f} s", flush=True)
        shutil.rmtree(to, ignore_errors=True)
        count += 1


def size(path):
    """The bytes on the disk below a path."""
    total = 0
    for folder, _, names in os.walk(path):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_blocks * 512
            except OSError:
                pass
    return total


def held(pid):
    """Its resident bytes, and its number of threads."""
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        text = status.read()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) << 10, int(re.search(r"Threads:\s+(\d+)", text)[1])


def processor_s(pid):
    """The processor time in seconds: of a process, and of all."""
    ticks = os.sysconf("SC_CLK_TCK")
    with open(f"/proc/{pid}/stat", encoding="ascii") as stat:
        of_one = stat.read().rsplit(")", 1)[1].split()
    with open("/proc/stat", encoding="ascii") as stat:
        of_all = [int(word) for word in stat.readline().split()[1:]]
    # Without the times that it was idle and waited for a disk.
    return (int(of_one[11]) + int(of_one[12])) / ticks, (sum(of_all[:3]) + sum(of_all[5:8])) / ticks


def metric(client, name):
    found = re.search(rf"^{name} (\S+)", client.ask("GET", "/metrics").body.decode(), re.M)
    return float(found[1]) if found else 0.0


def sampler(soak):
    client = soak.server.client()
    while not soak.ended.wait(10):
        pid = soak.server.process.pid
        rss, threads = held(pid)
        gauge = metric(client, "blackboard_resident_bytes")
        files, deleted = len(os.listdir(f"/proc/{pid}/fd")), soak.counts["delete session"]
        sample = Sample(soak.elapsed(), rss, gauge, size(soak.server.data), files, threads, deleted)
        soak.samples.append(sample)
        if len(soak.samples) % 6 == 0:
            show(sample)


def show(sample):
    print(f"{sample.seconds:5.0f} s  resident {sample.resident >> 20} MiB, by the gauge {int(sample.gauge) >> 20} MiB, "
          f"disk {sample.disk >> 20} MiB, {sample.files} files open, {sample.threads} threads", flush=True)


def compare(soak):
    """Each operation's median in the first window and in the last."""
    print(f"\n{'operation':20} {'count':>7} {'first p50':>11} {'last p50':>11} {'ratio':>6} {'last p99':>11}")
    for name, windows in sorted(soak.times.items()):
        first, last = windows[0], windows[-1]
        if len(first) < COUNTED_MIN or len(last) < COUNTED_MIN:
            print(f"{name:20} {soak.counts[name]:7} too few to compare")
            continue
        before, after = statistics.median(first), statistics.median(last)
        print(f"{name:20} {soak.counts[name]:7} {before * 1e3:8.2f} ms {after * 1e3:8.2f} ms "
              f"{after / before:6.2f} {p99(last) * 1e3:8.2f} ms")
        if after > before * MEDIAN_GROWTH_MAX:
            soak.fail(f"{name} takes {after / before:.2f} times as long as in the first minutes")
    for name in ("backup", "events"):
        print(f"{name:20} {soak.counts[name]:7}")
    level_off(soak)


def p99(times):
    return sorted(times)[int(len(times) * 0.99)]


def level_off(soak):
    """The p99 of all operations in the first and last windows, and what is held in the second and the last."""
    first, last = ([took for windows in soak.times.values() for took in windows[at]] for at in (0, -1))
    if len(first) < COUNTED_MIN or len(last) < COUNTED_MIN:
        return
    before, after = p99(first), p99(last)
    print(f"p99 of all: {before * 1e3:.2f} ms in the first tenth, {after * 1e3:.2f} ms in the last: x {after / before:.2f}")
    if after > before * P99_GROWTH_MAX:
        soak.fail(f"the p99 of all operations grew to {after / before:.2f} times")
    window = len(soak.samples) // WINDOWS
    if window == 0:
        return
    # The first tenth warms up.
    early, late = (
        Sample(*map(statistics.median, zip(*samples)))
        for samples in (soak.samples[window : 2 * window], soak.samples[-window:])
    )
    names = late.deleted - early.deleted
    print(f"{names:.0f} sessions deleted in between")
    for name in ("resident", "gauge", "disk", "files", "threads"):
        before, after = getattr(early, name), getattr(late, name)
        is_count = name in ("files", "threads")
        scale, unit = (1, "") if is_count else (1 << 20, " MiB")
        left = after if is_count else after - names * NAME_BYTES_MAX
        rest = "" if is_count else f", {left / scale:.0f} MiB without names"
        print(f"{name}: {before / scale:.0f}{unit} in the second tenth, {after / scale:.0f}{unit} in the last{rest}: "
              f"x {left / before:.2f}")
        if left > before * LEVEL_GROWTH_MAX:
            soak.fail(f"{name} grew to {left / before:.2f} times")


def go_away(soak, minutes):
    """Deletes all, writes a little, and waits until the disk has come back."""
    client, begun = soak.server.client(), time.monotonic()
    peak, count = size(soak.server.data), 0
    while True:
        names = [each["session"] for each in client.ask("GET", "/v1/sessions?limit=1000").json()["sessions"]]
        names = [name for name in names if name != "trickle"]
        if not names:
            break
        for name in names:
            answer = client.ask("DELETE", f"/v1/sessions/{name}")
            count += 1
            if answer.status != 200:
                soak.fail(f"deleting {name} is answered {answer.status}")
    print(f"\n{count} sessions deleted, {peak >> 20} MiB on the disk; {TRICKLE_PER_S} writes a second go on")
    n = 0
    while size(soak.server.data) > DISK_LEFT_MAX:
        if time.monotonic() - begun > minutes * 60:
            soak.fail(f"after {minutes:.0f} minutes {size(soak.server.data) >> 20} MiB are still on the disk")
            break
        client.ask("POST", "/v1/sessions/trickle/trajectories", {"step": n, "text": "a step"})
        n += 1
        time.sleep(1 / TRICKLE_PER_S)
    print(f"disk {size(soak.server.data) >> 20} MiB after {time.monotonic() - begun:.0f} s", flush=True)
    time.sleep(5)
    print(f"resident {held(soak.server.process.pid)[0] >> 20} MiB, "
          f"by the gauge {int(metric(client, 'blackboard_resident_bytes')) >> 20} MiB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--minutes", type=float, default=100.0)
    parser.add_argument("--agents", type=int, default=18)
    parser.add_argument("--away-minutes", type=float, default=10.0)
    arguments = parser.parse_args()
    with Server(arguments.server) as server:
        soak = Soak(server, arguments.minutes, arguments.agents)
        client = server.client()
        for n in range(SHARED):
            client.ask("PUT", f"/v1/sessions/shared-{n}", SETTINGS)
        threads = [soak.forever(agent, soak, n) for n in range(arguments.agents)]
        threads += [soak.forever(work, soak, n) for n in range(SHARED) for work in (watcher, watcher)]
        threads += [soak.forever(work, soak) for work in (exporter, backups, sampler)]
        begun = processor_s(server.process.pid)
        time.sleep(soak.seconds)
        soak.ended.set()
        shares = [(after - before) / soak.seconds for before, after in zip(begun, processor_s(server.process.pid))]
        print(f"processors busy: {shares[0]:.2f} by the server, {shares[1]:.2f} of {os.cpu_count()} by all", flush=True)
        for thread in threads:
            thread.join(45)
        compare(soak)
        go_away(soak, arguments.away_minutes)
        for line in server.said:
            if re.search(r"\b(WARN|ERROR)\b", line):
                soak.fail(f"the log says: {line[:300]}")
        print(f"\n{len(soak.broken)} promises broken")
    return 1 if soak.broken else 0


if __name__ == "__main__":
    sys.exit(main())
