"""Tasks with caps, priorities and delays, done by sixteen workers, of which two are killed, and the server twice.

Workers are processes. Each claims the next task by a wait, works on it for a constant time, of which some tasks take more
than a time to live, and ends it: some first attempts fail with a pause. What everybody asks, is answered and does goes into
a history, which `task_history.py` judges together with the server's commits; then it must reject that history with each of
the faults of `history_faults.py`. The first tasks are posted one by one, at a rate that leaves some workers waiting, the
others at once.
"""

import http.client
import json
import multiprocessing
import re
import signal
import time
from multiprocessing.sharedctypes import RawValue

import history_faults
import load
import task_history
from board_server import Client

SESSION = "/v1/sessions/tasks"
WORKERS = 16
# The kinds, with the cap of each and its share of the tasks. A capped kind is a member that only its items have.
CAPS = {"one": 1, "two": 2, "eight": 8}
SHARES = {"one": 1, "two": 2, "eight": 7, "red": 4, "blue": 4}
TASKS_IN_SHORT, TASKS_IN_LONG = 300, 5_000
# The load of other tests counts as a loss. The short form runs beside such, so it notices only workers that hardly work.
LEAST_IN_SHORT, LEAST_IN_LONG = 0.2, task_history.LEAST
WORK_S = 0.25
TTL_S = 3
LONG_WORK_S = TTL_S * 1.3
WAIT_S = 2
PAUSE_S = 0.02
RETRY_S = 0.3
DELAYS_S = (0, 0, 0, 0, 0, 0, 0, 0, 0.4, 1.2)
PRIORITIES = (0, 0, 0, 0, 1, 5, -3)
# Of all tasks, those that are posted one by one, and how many a second.
PACED = 0.4
PACE = 0.5 * WORKERS / WORK_S
END_S_MAX = 300


def milliseconds(seconds):
    return f"{round(seconds * 1000)}ms"


class Worker:
    """A worker, which notes each step before the next."""

    def __init__(self, address, agent, file):
        self.client, self.agent, self.file = Client(address, 60), agent, file
        # The number of requests sent; the last revision shown; what that was before the last request, and when that was sent.
        self.sent, self.seen, self.before = 0, 0, {}

    def note(self, what, **facts):
        self.file.write(json.dumps({"what": what, "agent": self.agent} | facts) + "\n")

    def run(self, stopping):
        self.note("began", at=time.time())
        while not stopping.value:
            answer = self.ask("POST", f"/claim?wait={WAIT_S}s", {"ttl": f"{TTL_S}s"}, WAIT_S)
            if answer.status == 200:
                self.attempt(answer.json())

    def ask(self, method, path, body, wait_s=None):
        """Asks until there is an answer. A repeat has the key of the first, so that nothing happens twice."""
        self.sent += 1
        self.before = {"seen": self.seen, "asked": time.time()}
        named = {"X_Agent_ID": self.agent, "Idempotency_Key": f"{self.agent}-{self.sent}"}
        while True:
            begun = time.monotonic()
            try:
                answer = self.client.ask(method, f"{SESSION}/requests{path}", body, **named)
            except (OSError, http.client.HTTPException):
                time.sleep(PAUSE_S)
                continue
            if answer.status == 503:
                time.sleep(PAUSE_S)
                continue
            load.expect(answer, 200, 201, 204, 409)
            self.seen = max(self.seen, int(answer.headers["blackboard-revision"]))
            if answer.status == 204:
                self.note("empty", wait_s=wait_s, took_s=time.monotonic() - begun)
            return answer

    def attempt(self, task):
        """Works on a task, and ends the attempt as its item says."""
        seq, fence, item = task["seq"], task["claim"]["fence"], task["item"]
        self.note("claimed", request=seq, fence=fence, at=time.time(), **self.before)
        fence = self.work(seq, fence, item["work_s"])
        if fence is None:
            return
        failures = sum(past["outcome"] == "failed" for past in task.get("past_attempts", ()))
        end, delay_s = ("failed", RETRY_S) if failures < item["failures"] else ("done", 0)
        self.note("worked", request=seq, fence=fence, at=time.time(), end=end, delay_s=delay_s)
        facts = {"result": seq} if end == "done" else {"reason": "asked for", "retry_in": milliseconds(delay_s)}
        answer = self.ask("PUT", f"/{seq}/{end}", {"fence": fence} | facts)
        self.note("answered", request=seq, fence=fence, end=end, status=answer.status, revision=answer.json().get("revision"))

    def work(self, seq, fence, left_s):
        """Works, and renews the claim; the fence at the end, or nothing if the claim is lost."""
        while left_s > 0:
            part_s = min(left_s, TTL_S / 3)
            time.sleep(part_s)
            left_s -= part_s
            if left_s <= 0:
                break
            renewed = self.ask("PUT", f"/{seq}/claim", {"ttl": f"{TTL_S}s"})
            found = renewed.json()["claim"]["fence"] if renewed.status != 409 else None
            if found != fence:
                # It lapsed, as while the server was down. If nobody else has the task, this was a claim.
                self.note("worked", request=seq, fence=fence, at=time.time(), end="lost", delay_s=0)
                if found is None:
                    return None
                fence = found
                self.note("claimed", request=seq, fence=fence, at=time.time())
        return fence


def work(address, agent, path, stopping):
    with open(path, "a", buffering=1) as file:
        Worker(address, agent, file).run(stopping)


def notes(path):
    """What a worker noted, without a line that it is writing or was killed at."""
    with open(path) as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def is_working(path):
    return any(note["what"] == "claimed" for note in notes(path)[-1:])


class Tasks:
    """Tasks done by workers, some of which are killed, as is the server."""

    name = "tasks"
    short, long = 1, 5

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        chance = self.place.chance(self.name, number)
        count, least = (TASKS_IN_LONG, LEAST_IN_LONG) if self.place.is_long else (TASKS_IN_SHORT, LEAST_IN_SHORT)
        server = self.place.server(self.place.path("data"))
        with server:
            server.port = server.address[1]
            run = Run(self.place, server, chance, count)
            try:
                history = run.history()
            finally:
                run.end()
        with open(self.place.path("history"), "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in history)
        counts = task_history.judge(history, least)
        counts["faults rejected"] = history_faults.judge(history, least)
        for what, counted in (("down", "kills of servers"), ("killed", "kills of workers")):
            counts[counted] = len(history_faults.notes(history, what))
        self.place.sound(self.place.path("data"))
        return counts


class Run:
    """One load: the plan of posts and kills by time, and what the planner notes."""

    def __init__(self, place, server, chance, count):
        self.server, self.chance, self.client = server, chance, server.client()
        self.notes = [{"what": "terms", "caps": CAPS, "ttl_s": TTL_S}]
        rules = [{"by": kind, "max": cap} for kind, cap in CAPS.items()]
        load.expect(self.client.ask("PUT", SESSION, {"settings": {"running_max": rules}}), 201)
        self.stopping, self.workers = RawValue("b", 0), {}
        for number in range(WORKERS):
            agent, path = f"worker-{number}", place.path(f"worker-{number}")
            open(path, "w").close()
            self.workers[agent] = (path, self.started(server.address, agent, path))
        self.count, self.plan = count, self.planned(count)

    def started(self, *what):
        process = multiprocessing.Process(target=work, args=(*what, self.stopping), daemon=True)
        process.start()
        return process

    def planned(self, count):
        """What happens when, in seconds from the beginning."""
        tasks = [self.task() for _ in range(count)]
        paced = round(count * PACED)
        half_s = paced / PACE
        plan = [(place / PACE, lambda task=task: self.post([task])) for place, task in enumerate(tasks[:paced])]
        groups = {}
        for task in tasks[paced:]:
            groups.setdefault(task[1:], []).append(task)
        plan += [(half_s, lambda group=group: self.post(group)) for group in groups.values()]
        for begin_s, length_s in ((0, half_s), (half_s, (count - paced) * WORK_S / WORKERS)):
            for step in (self.kill_server, self.kill_worker):
                plan.append((begin_s + length_s * self.chance.uniform(0.1, 0.8), step))
        return sorted(plan, key=lambda step: step[0])

    def task(self):
        """An item, its priority and its delay."""
        [kind] = self.chance.choices(list(SHARES), SHARES.values())
        item = {"kind": kind, "work_s": LONG_WORK_S if self.chance.random() < 0.01 else WORK_S}
        item["failures"] = int(self.chance.random() < 0.08)
        if kind in CAPS:
            item[kind] = True
        return item, self.chance.choice(PRIORITIES), self.chance.choice(DELAYS_S)

    def history(self):
        """Does all that is planned, waits for the tasks to be done, and returns the history."""
        begun = time.monotonic()
        for at, step in self.plan:
            time.sleep(max(0, begun + at - time.monotonic()))
            step()
        commits = self.until_done()
        self.stopping.value = 1
        for agent, (path, process) in self.workers.items():
            process.join()
            if process.exitcode not in (0, -signal.SIGKILL):
                raise load.Broken(f"{agent} ended with {process.exitcode}, after {notes(path)[-1:]}")
        self.count_offers()
        commits += self.page(commits[-1]["revision"])
        self.notes += [{"what": "commit"} | commit for commit in commits]
        for path, _ in self.workers.values():
            self.notes += notes(path)
        return self.notes

    def end(self):
        for _, process in self.workers.values():
            process.kill()
            process.join()

    def post(self, tasks):
        items, (_, priority, delay_s) = [item for item, *_ in tasks], tasks[0]
        delay = f"&not_before={milliseconds(delay_s)}" if delay_s else ""
        path = f"{SESSION}/requests?priority={priority}{delay}"
        answer = load.expect(self.client.ask("POST", path, items), 201).json()
        for entry, item in zip(answer["entries"], items, strict=True):
            facts = {"request": entry["seq"], "revision": answer["revision"], "kind": item["kind"]}
            self.notes.append({"what": "posted", **facts, "priority": priority, "delay_s": delay_s})

    def kill_server(self):
        self.count_offers()
        begun = time.time()
        self.server.kill()
        self.server.start()
        self.client = self.server.client()
        self.notes.append({"what": "down", "from": begun, "to": time.time()})

    def kill_worker(self):
        """Kills one that is working; another one too if the first ended its attempt just then."""
        end = time.monotonic() + END_S_MAX
        while time.monotonic() < end:
            agent = self.chance.choice([agent for agent, (_, process) in self.workers.items() if process.is_alive()])
            path, process = self.workers[agent]
            if is_working(path):
                process.kill()
                process.join()
                self.notes.append({"what": "killed", "agent": agent, "at": time.time()})
                if is_working(path):
                    return
            time.sleep(PAUSE_S)
        raise load.Broken("no worker works")

    def count_offers(self):
        """The server counts from its start."""
        text = load.expect(self.client.ask("GET", "/metrics"), 200).body.decode()
        count = int(re.search(r"^blackboard_claim_offers_total (\d+)$", text, re.MULTILINE)[1])
        self.notes.append({"what": "offers", "count": count})

    def page(self, after, wait=""):
        path = f"{SESSION}/events?after={after}{wait}"
        return load.expect(self.client.ask("GET", path, Accept="application/json"), 200).json()["events"]

    def until_done(self):
        """The commits up to the one that ends the last task."""
        commits, left, end = [], self.count, time.monotonic() + END_S_MAX
        while left:
            page = self.page(commits[-1]["revision"] if commits else 0, "&wait=1s")
            commits += page
            left -= sum(change["kind"] == "finished" for commit in page for change in commit["changes"])
            if time.monotonic() > end:
                raise load.Broken(f"{left} of {self.count} tasks are not done")
        return commits
