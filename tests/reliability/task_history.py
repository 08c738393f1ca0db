#!/usr/bin/env python3
"""Checker of a history of tasks: what was asked, what workers were answered and did, and the server's commits.

    tests/reliability/task_history.py FILE [--least SHARE]

It knows the contract, and imports nothing of the server, its clients or the load. FILE has a JSON object a line:

    terms     caps (by kind), ttl_s
    posted    request, revision, kind, priority, delay_s; from the answer to whoever posted it
    began     agent, at; from the worker, before its first claim
    claimed   agent, request, fence, at; of the next task also asked, and seen, the last revision that it was shown before
    worked    agent, request, fence, at, end (done, failed), delay_s; before it asks for that end
    answered  agent, request, fence, end, status, revision
    empty     agent, wait_s, took_s; a claim that was answered without a request
    killed    agent, at
    down      from, to; the server was not there
    offers    count; claims that the server offered to waiting workers
    commit    revision, at, agent, changes; as in the server's events, read after the last start

Safety is judged by revisions. A session's commits have one order, so what is claimed at a revision is known without a
clock: a claim holds from its commit to the commit that ends it. The answers bind this order to what workers saw: what was
acknowledged must stand at the revision that the answer names. So a server could not show a better history than it gave.

A delay or a time to live is as long as its client asked for, and is compared with the difference of two commits' times,
which are of one clock. Of two requests, the higher priority goes first only if the worker had a choice: the better one must
have been claimable at each revision from the one that the worker had seen before it asked. What became claimable later may
be in the hands of another worker that was offered it.

A worker waited for an attempt if it asked before its task could be claimed. The server offers each to one worker: its counter
of offers shows how many it woke.

Parallelism is the time that workers worked, by their own clocks, as a share of what was possible: the number of workers
alive, or of tasks that were held by them or that could have been, if less. Workers and server must be on one machine.
"""

import argparse
import bisect
import json
import sys
from collections import Counter, defaultdict
from datetime import datetime

LEAST = 0.8
# The offers of an attempt that a worker waited for. One is right, but another worker that asks just then may take the task.
OFFERS_MAX = 1.2
# Times of commits are cut to milliseconds.
ROUNDING_S = 0.002
# Changes of a task, and those that make one.
CHANGES = ("claimed", "finished", "failed", "claim_expired", "due")
ASIDE = ("created", "appended", "planned")


class Wrong(RuntimeError):
    """A history that the contract does not allow."""


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Task:
    """A task as the commits so far have it."""

    def __init__(self, posted):
        self.seq, self.kind = posted["request"], posted["kind"]
        self.rank = (-posted["priority"], self.seq)
        self.delay_s = posted["delay_s"]
        # Since when it waits for a worker, and the times from which the delay and the time to live count.
        self.open_since, self.open_at, self.paused_at, self.renewed_at = None, None, None, None
        # `lapsed` has a fence that still passes.
        self.state, self.holder, self.fence = "open", None, None


class Commits:
    """Judge of the commits, in their order."""

    def __init__(self, records):
        self.by = defaultdict(list)
        for record in records:
            self.by[record["what"]].append(record)
        [terms] = self.by["terms"]
        self.caps, self.ttl_s = terms["caps"], terms["ttl_s"]
        self.posted = defaultdict(list)
        for posted in self.by["posted"]:
            self.posted[posted["revision"]].append(posted)
        self.next = {claim["fence"]: claim for claim in self.by["claimed"] if "seen" in claim}
        self.worked = {(work["request"], work["fence"]): work for work in self.by["worked"]}
        self.tasks, self.held, self.room_since, self.room_at = {}, Counter(), Counter(), Counter()
        # The ranks of the tasks of each kind that wait for a worker.
        self.waiting = defaultdict(list)
        # What each claim became, by its fence; and when a task could be claimed again.
        self.claims, self.ends, self.openings = {}, {}, []
        self.counts = Counter()

    def judge(self):
        for place, commit in enumerate(self.by["commit"], 1):
            if commit["revision"] != place:
                raise Wrong(f"revision {place} is not there")
            self.revision, self.at, self.agent = place, moment(commit["at"]), commit.get("agent")
            for posted in self.posted.pop(place, ()):
                self.post(posted)
            for change in commit["changes"]:
                if change["kind"] in CHANGES:
                    getattr(self, change["kind"])(change)
                elif change["kind"] not in ASIDE:
                    raise Wrong(f"revision {place}: nobody asked for {change}")
        left = [task.seq for task in self.tasks.values() if task.state != "done"]
        if left or self.posted:
            raise Wrong(f"not done: tasks {left[:10]}, and those of revisions {list(self.posted)[:10]}")

    def wrong(self, task, what):
        raise Wrong(f"revision {self.revision}: task {task.seq} ({task.kind}) {what}")

    def post(self, posted):
        task = self.tasks[posted["request"]] = Task(posted)
        self.reopen(task, task.delay_s)

    def reopen(self, task, delay_s):
        """The task can be claimed again, after a delay."""
        self.openings.append((self.at + delay_s, task.kind))
        task.delay_s, task.paused_at = delay_s, self.at
        if delay_s == 0:
            self.open(task)

    def open(self, task):
        task.open_since, task.open_at = self.revision, self.at
        bisect.insort(self.waiting[task.kind], task.rank)

    def due(self, change):
        for first, last in change["requests"]:
            for task in map(self.tasks.get, range(first, last + 1)):
                if task.open_since is not None or task.state == "done":
                    self.wrong(task, "is due, and was not early")
                if self.at - task.paused_at < task.delay_s - ROUNDING_S:
                    self.wrong(task, f"is due too early: {task.delay_s} s after {task.paused_at}")
                self.open(task)

    def claimed(self, change):
        task, fence = self.tasks[change["request"]], change["fence"]
        if fence != self.revision:
            if task.state != "claimed" or (task.holder, task.fence) != (self.agent, fence):
                self.wrong(task, f"is renewed by {self.agent} with {fence}; it is {task.state} by {task.holder}, {task.fence}")
            task.renewed_at = self.at
            return
        if task.state in ("claimed", "done"):
            self.wrong(task, f"is claimed by {self.agent}; it is {task.state} by {task.holder}")
        if task.open_since is None or self.at - task.paused_at < task.delay_s - ROUNDING_S:
            self.wrong(task, f"is claimed too early: {task.delay_s} s after {task.paused_at}")
        cap = self.caps.get(task.kind)
        if cap is not None and self.held[task.kind] >= cap:
            self.wrong(task, f"is claimed beside {cap} others: more than the cap")
        if self.revision in self.next:
            claim = self.next[self.revision]
            self.judge_order(task, claim["seen"])
            self.counts["attempts waited for"] += claim["asked"] < max(task.open_at, self.room_at[task.kind])
        self.waiting[task.kind].remove(task.rank)
        self.held[task.kind] += 1
        task.state, task.holder, task.fence, task.open_since, task.renewed_at = "claimed", self.agent, fence, None, self.at
        self.claims[fence] = {"task": task.seq, "kind": task.kind, "agent": self.agent, "from": self.at}
        self.counts["attempts"] += 1

    def judge_order(self, task, seen):
        """No better task was there for this worker all the time."""
        for kind, ranks in self.waiting.items():
            if kind in self.caps and (self.held[kind] >= self.caps[kind] or self.room_since[kind] > seen):
                continue
            for rank in ranks:
                if rank >= task.rank:
                    break
                since = self.tasks[rank[1]].open_since
                if since <= seen:
                    self.wrong(task, f"is claimed out of order: task {rank[1]} of a higher rank waits since revision {since}")

    def end(self, task, state):
        """Ends a claim, which its task may have lost already."""
        if task.state == "claimed":
            if self.held[task.kind] == self.caps.get(task.kind):
                self.room_since[task.kind], self.room_at[task.kind] = self.revision, self.at
            self.held[task.kind] -= 1
            self.claims[task.fence]["to"] = self.at
        elif task.open_since is not None:
            self.waiting[task.kind].remove(task.rank)
            self.openings.append((self.at, task.kind, -1))
        task.state, task.open_since = state, None
        self.ends.setdefault(task.fence, []).append((state, self.revision))

    def finished(self, change):
        task = self.tasks[change["request"]]
        if task.state == "done":
            self.wrong(task, "is done twice")
        if task.state not in ("claimed", "lapsed") or (task.holder, task.fence) != (self.agent, change.get("fence")):
            self.wrong(task, f"is finished with the stale fence {change.get('fence')}; {task.fence} is {task.state}")
        self.judge_work(task, "done")
        self.end(task, "done")
        self.counts["tasks"] += 1

    def failed(self, change):
        task = self.tasks[change["request"]]
        if task.state != "claimed" or task.holder != self.agent:
            self.wrong(task, f"is failed by {self.agent}; it is {task.state} by {task.holder}")
        delay_s = self.judge_work(task, "failed")
        self.end(task, "failed")
        self.reopen(task, delay_s)
        self.counts["failures"] += 1

    def judge_work(self, task, end):
        """Its worker meant to end it so; the delay that it asked for."""
        work = self.worked.get((task.seq, task.fence))
        if work is None or (work["agent"], work["end"]) != (self.agent, end):
            self.wrong(task, f"is {end}, for which {self.agent} did not ask")
        return work["delay_s"]

    def claim_expired(self, change):
        task = self.tasks[change["request"]]
        if task.state != "claimed" or self.at - task.renewed_at < self.ttl_s - ROUNDING_S:
            self.wrong(task, f"lapsed; it is {task.state}, and renewed at {task.renewed_at}")
        self.end(task, "lapsed")
        self.reopen(task, 0)
        self.counts["lapses"] += 1

    def judge_answers(self):
        """What workers were answered stands in the commits, and nothing more than a killed one could have missed."""
        told = Counter()
        for claim in self.by["claimed"]:
            made = self.claims.get(claim["fence"])
            if made is None or (made["task"], made["agent"]) != (claim["request"], claim["agent"]):
                raise Wrong(f"an acknowledged claim is lost: {claim}")
            told[claim["fence"]] += 1
        killed = {kill["agent"] for kill in self.by["killed"]}
        missed = Counter(claim["agent"] for fence, claim in self.claims.items() if fence not in told)
        if any(agent not in killed or count > 1 for agent, count in missed.items()):
            raise Wrong(f"claims without an answer: {dict(missed)}")
        for answer in self.by["answered"]:
            self.judge_end(answer)

    def judge_end(self, answer):
        ends = self.ends.get(answer["fence"], [])
        if answer["status"] == 200:
            # A claim that lapsed has failed already, and fails no second time.
            has_lapsed = answer["end"] == "failed" and any(state == "lapsed" for state, _ in ends)
            if not has_lapsed and (answer["end"], answer["revision"]) not in ends:
                raise Wrong(f"an acknowledged end is lost: {answer}, {ends}")
        elif answer["status"] != 409 or not any(state == "lapsed" for state, _ in ends):
            raise Wrong(f"a worker's end was rejected while it held the task: {answer}, {ends}")

    def judge_waking(self):
        """An attempt that a worker waited for wakes one, and no wait is over early without a task."""
        offers, waits = sum(record["count"] for record in self.by["offers"]), self.counts["attempts waited for"]
        self.counts["offers"] = offers
        if offers > waits * OFFERS_MAX:
            raise Wrong(f"{offers} wake-ups of workers for {waits} attempts that were waited for")
        for empty in self.by["empty"]:
            if empty["took_s"] < empty["wait_s"] - ROUNDING_S:
                raise Wrong(f"a wait was over early: {empty}")

    def judge_parallelism(self, least):
        worked, possible = Sweep(self).integrals()
        self.counts["worker-seconds worked"] = round(worked)
        self.counts["worker-seconds possible"] = round(possible)
        if worked < least * possible:
            raise Wrong(f"parallelism is {worked / possible:.3f} of the possible, less than {least}")


class Sweep:
    """Numbers of workers and tasks over time."""

    def __init__(self, commits):
        self.caps, self.steps = commits.caps, []
        dead = {kill["agent"]: kill["at"] for kill in commits.by["killed"]}
        last = moment(commits.by["commit"][-1]["at"])
        for at, kind, *amount in commits.openings:
            self.add(at, ("open", kind), *amount)
        for claim in commits.claims.values():
            end = claim.get("to", last)
            self.add(claim["from"], ("open", claim["kind"]), -1)
            self.span(("held", claim["kind"]), claim["from"], end)
            self.span("living", claim["from"], min(end, dead.get(claim["agent"], end)))
        for began in commits.by["began"]:
            self.span("alive", began["at"], dead.get(began["agent"], last))
        for claim in commits.by["claimed"]:
            work = commits.worked.get((claim["request"], claim["fence"]))
            self.span("working", claim["at"], work["at"] if work else dead.get(claim["agent"], claim["at"]))
        for down in commits.by["down"]:
            self.span("down", down["from"], down["to"])

    def add(self, at, what, amount=1):
        self.steps.append((at, what, amount))

    def span(self, what, begin, end):
        if begin < end:
            self.add(begin, what)
            self.add(end, what, -1)

    def integrals(self):
        """The worker-seconds worked and possible, without those in which the server was down."""
        now, before, worked, possible = Counter(), None, 0.0, 0.0
        for at, what, amount in sorted(self.steps, key=lambda step: step[0]):
            if before is not None and at > before and not now["down"]:
                could = min(now["alive"], now["living"] + self.room(now))
                possible += could * (at - before)
                worked += min(now["working"], could) * (at - before)
            now[what] += amount
            before = at
        return worked, possible

    def room(self, now):
        """The tasks that could be claimed beside those that are."""
        room = 0
        for what, count in now.items():
            if what[0] == "open":
                cap = self.caps.get(what[1])
                room += max(count if cap is None else min(count, cap - now["held", what[1]]), 0)
        return room


def judge(records, least=LEAST):
    """Raises Wrong if the history is not allowed; else what there was."""
    commits = Commits(records)
    commits.judge()
    commits.judge_answers()
    commits.judge_waking()
    commits.judge_parallelism(least)
    return commits.counts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("file", type=argparse.FileType())
    parser.add_argument("--least", type=float, default=LEAST, help=f"the least share of the possible parallelism ({LEAST})")
    given = parser.parse_args()
    try:
        counts = judge([json.loads(line) for line in given.file], given.least)
    except Wrong as wrong:
        sys.exit(f"wrong: {wrong}")
    share = counts["worker-seconds worked"] / counts["worker-seconds possible"]
    print(", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())), f"parallelism {share:.3f}", sep="; ")


if __name__ == "__main__":
    main()
