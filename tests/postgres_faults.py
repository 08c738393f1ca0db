#!/usr/bin/env python3
"""Faults of replicas and of PostgreSQL: nothing acknowledged is lost or duplicated, and writes resume.

    tests/postgres_faults.py [--server PATH] [--rounds N] [--pause SECONDS] [--timed] [--only NAME,...]

Three servers over one PostgreSQL, with a synchronous standby for the promotion. Writers append through servers chosen at
random while, round by round, a server is killed, PostgreSQL is killed and started again, a server is paused and goes on,
and at the end the standby is promoted in place of the killed primary. Through a pooler in session mode PostgreSQL is killed too;
behind one in another mode no server starts, and none that starts depends on the defaults of its role. Half of the writers send a key and repeat until
they are answered: each of their items is there exactly once. The others send once: an acknowledged item is there once, any
other one at most once. `clocks` has servers minutes off PostgreSQL's clock, by a library before libc's (cc); `lagged`
promotes a standby that lacks acknowledged commits. Exits with 1 at the first promise that is broken; prints what was
counted.
"""

import argparse
import datetime
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import threading
import time

from board_server import Server
from postgres import Cluster, Home, Pooler

WRITERS = 8
SERVERS = 3
BACK_S_MAX = 1.0
# The longest answer while the engine is down.
REFUSED_S_MAX = 2.5
# Writes go on for so long before each fault.
CALM_S = (0.2, 0.8)
# How far the servers' clocks are from PostgreSQL's.
CLOCKS_OFF_S = (300, -300, 0)
CLOCK_ERROR_S_MAX = 60
WITHIN_S_MAX = 30
# The wall clock alone is off. libfaketime does not get along with jemalloc.
OFF = """
#define _GNU_SOURCE
#include <time.h>
#include <unistd.h>
#include <sys/syscall.h>
int clock_gettime(clockid_t id, struct timespec *at) {
    int failed = (int)syscall(SYS_clock_gettime, id, at);
    if (!failed && id == CLOCK_REALTIME) at->tv_sec += OFF_S;
    return failed;
}
"""


class Broken(Exception):
    """A promise that was not kept."""


class Load:
    """Writers of one session each, whose ledgers say what was acknowledged."""

    def __init__(self, replicas):
        self.replicas, self.stopping, self.lock = replicas, threading.Event(), threading.Lock()
        self.acknowledged = [dict() for _ in range(WRITERS)]
        self.sent = [0] * WRITERS
        self.answers, self.last, self.slowest = {}, 0.0, 0.0
        self.threads = [threading.Thread(target=self.write, args=(w,)) for w in range(WRITERS)]
        for thread in self.threads:
            thread.start()

    def write(self, writer):
        while not self.stopping.is_set():
            n = self.sent[writer]
            self.sent[writer] += 1
            keyed = writer % 2 == 0
            while not self.stopping.is_set():
                status, seq = self.post(writer, n, keyed)
                if status == 201:
                    self.acknowledged[writer][n] = seq
                if status == 201 or not keyed:
                    break
                time.sleep(0.02)

    def post(self, writer, n, keyed):
        address = random.choice(self.replicas).address
        if address is None:
            time.sleep(0.02)
            return None, None
        headers = {"content-type": "application/json"}
        if keyed:
            headers["idempotency-key"] = f"{writer}-{n}"
        begun, status, seq, where = time.monotonic(), None, None, "none"
        try:
            connection = http.client.HTTPConnection(*address, timeout=30)
            connection.request("POST", f"/v1/sessions/w{writer}/trajectories", json.dumps({"n": n}), headers)
            answer = connection.getresponse()
            body = answer.read()
            status, where = answer.status, str(answer.status)
            if status == 201:
                seq = json.loads(body)["entries"][0]["seq"]
            elif status == 503 and not answer.headers["retry-after"]:
                where = "503 without retry-after"
            connection.close()
        except (OSError, http.client.HTTPException):
            pass
        took = time.monotonic() - begun
        with self.lock:
            self.answers[where] = self.answers.get(where, 0) + 1
            if status == 201:
                self.last = time.monotonic()
            if status == 503:
                self.slowest = max(self.slowest, took)
        return status, seq

    def calm(self):
        time.sleep(random.uniform(*CALM_S))

    def until_back(self, since, within):
        """Waits for an acknowledged write that began after a moment; how long that took."""
        while self.last < since:
            if time.monotonic() - since > within + 30:
                raise Broken(f"no write was acknowledged within {within + 30:.0f} s")
            time.sleep(0.005)
        return self.last - since

    def end(self):
        self.stopping.set()
        for thread in self.threads:
            thread.join()

    def judge(self, replica):
        """Compares what a server shows with the ledgers; the numbers of acknowledged and present items."""
        acknowledged, present = 0, 0
        for writer in range(WRITERS):
            items, after = [], 0
            while True:
                page = get(replica, f"/v1/sessions/w{writer}/trajectories?limit=1000&after={after}")
                items += [(entry["seq"], entry["item"]["n"]) for entry in page["entries"]]
                if not page["more"]:
                    break
                after = page["next"]
            numbers = [n for _, n in items]
            twice = len(numbers) - len(set(numbers))
            lost = [n for n, seq in self.acknowledged[writer].items() if (seq, n) not in set(items)]
            if twice or lost:
                raise Broken(f"writer {writer}: {len(lost)} acknowledged are lost, {twice} are there twice")
            if [seq for seq, _ in items] != list(range(1, len(items) + 1)):
                raise Broken(f"writer {writer}: the seqs have gaps")
            acknowledged += len(self.acknowledged[writer])
            present += len(items)
        return acknowledged, present


def get(replica, path):
    connection = http.client.HTTPConnection(*replica.address, timeout=30)
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise Broken(f"GET {path}: {answer.status} {body[:300]}")
    return json.loads(body)


def kill_replica(load, replicas, _primary, options):
    for _ in range(options.rounds):
        load.calm()
        replica = random.choice(replicas)
        replica.address = None
        replica.kill()
        replica.start()
    return f"{options.rounds} kills of a server"


def kill_engine(load, _replicas, primary, options):
    backs = []
    for _ in range(options.rounds):
        load.calm()
        primary.kill()
        time.sleep(random.uniform(0.0, 0.5))
        primary.start()
        backs.append(load.until_back(time.monotonic(), BACK_S_MAX))
    if options.timed and max(backs) > BACK_S_MAX:
        raise Broken(f"writes came back only {max(backs):.2f} s after PostgreSQL")
    return f"{options.rounds} kills of PostgreSQL, writes again after {max(backs):.2f} s at most"


def pause(load, replicas, _primary, options):
    load.calm()
    replica = replicas[0]
    address, replica.address = replica.address, None
    replica.process.send_signal(signal.SIGSTOP)
    time.sleep(options.pause)
    # Requests wait in the paused server, and are answered when it goes on.
    replica.address = address
    replica.process.send_signal(signal.SIGCONT)
    load.calm()
    return f"a server paused for {options.pause:.0f} s"


def promote(load, _replicas, primary, options):
    load.calm()
    primary.kill()
    killed = time.monotonic()
    options.standby.promote()
    back = load.until_back(time.monotonic(), BACK_S_MAX)
    load.calm()
    if options.timed and back > BACK_S_MAX:
        raise Broken(f"writes came back only {back:.2f} s after the promotion")
    return f"a promotion, writes again {back:.2f} s after it, {load.last - killed:.1f} s of writes since"


# Defaults that would lose acknowledged commits, or fail appends that meet another one.
ROLE = ["synchronous_commit = off", "default_transaction_isolation = serializable", "gin_fuzzy_search_limit = 1"]


def role_defaults(load, replicas, primary, options):
    """All servers append to one session, while PostgreSQL is killed."""
    told = kill_engine(load, replicas, primary, options)
    others = {name: count for name, count in load.answers.items() if name not in ("201", "503", "none")}
    if others:
        raise Broken(f"appends failed by the role's defaults: {others}")
    contended(replicas)
    return f"{told}, with {', '.join(ROLE)} of the role"


def contended(replicas):
    """Appends of all servers to the same session, none of which fails."""
    failed = []

    def append(replica):
        for n in range(50):
            status, body = ask(replica, "POST", "/v1/sessions/contended/trajectories", {"n": n})
            if status != 201 and json.loads(body)["code"] != "overloaded":
                failed.append((status, body))

    threads = [threading.Thread(target=append, args=(replica,)) for replica in replicas for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise Broken(f"{len(failed)} appends to one session failed: {failed[0]}")


def ask(replica, method, path, body):
    connection = http.client.HTTPConnection(*replica.address, timeout=30)
    connection.request(method, path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer.status, text


def other_modes(home, primary, options):
    """No server starts behind a pooler that gives its transactions or statements to sessions in turn."""
    for mode in ("transaction", "statement"):
        pooler = Pooler(home, primary, mode).start()
        try:
            for attempt in range(options.rounds):
                replica = Server(options.server, store=pooler.url())
                try:
                    replica.start()
                except RuntimeError as error:
                    text = str(error)
                    if f"pooler in {mode} mode" not in text or "pool_mode = session" not in text:
                        raise Broken(f"a start behind a pooler in {mode} mode has no reason: {text}") from error
                else:
                    replica.kill()
                    raise Broken(f"start {attempt + 1} behind a pooler in {mode} mode is not refused")
        finally:
            pooler.stop()


TRIALS = {
    "kill-replica": kill_replica, "kill-engine": kill_engine, "pause": pause, "promote": promote,
    "role-defaults": role_defaults, "pooler": kill_engine,
}


def try_out(name, options):
    with Home() as home:
        settings = ["wal_level=replica", "max_wal_senders=4"]
        primary = Cluster(home, "primary", settings).init().start()
        hosts = f"127.0.0.1:{primary.port}"
        if name == "promote":
            options.standby = Cluster(home, "standby", settings).follow(primary).start()
            primary.sql("ALTER SYSTEM SET synchronous_standby_names = 'standby'")
            primary.sql("SELECT pg_reload_conf()")
            hosts += f",127.0.0.1:{options.standby.port}"
        if name in ("role-defaults", "pooler"):
            for setting in ROLE:
                primary.sql(f"ALTER ROLE blackboard SET {setting}")
        pooler = None
        if name == "pooler":
            other_modes(home, primary, options)
            pooler = Pooler(home, primary, "session").start()
            hosts = f"127.0.0.1:{pooler.port}"
        store = f"postgres://blackboard@{hosts}/postgres?target_session_attrs=read-write"
        replicas = [Server(options.server, store=store, arguments=["--token-rate", "0"]) for _ in range(SERVERS)]
        for replica in replicas:
            replica.start()
        try:
            load = Load(replicas)
            try:
                told = TRIALS[name](load, replicas, primary, options)
            finally:
                load.end()
            counts = {load.judge(replica) for replica in replicas}
            if len(counts) != 1:
                raise Broken(f"the servers show different sessions: {counts}")
            if "503 without retry-after" in load.answers:
                raise Broken("a 503 has no Retry-After")
            # In a paused server requests wait as long as the pause.
            if options.timed and name != "pause" and load.slowest > REFUSED_S_MAX:
                raise Broken(f"a refusal took {load.slowest:.1f} s")
            ((acknowledged, present),) = counts
            print(f"{name}: {told}; {acknowledged} acknowledged, {present} there, 0 lost, 0 twice; answers "
                  f"{dict(sorted(load.answers.items()))}, slowest refusal {load.slowest:.2f} s", flush=True)
        finally:
            for replica in replicas:
                replica.kill()
            if pooler:
                pooler.stop()
            for cluster in (options.standby if name == "promote" else None, primary):
                if cluster and cluster.process.poll() is None:
                    cluster.stop()


def within(what, holds):
    """Waits until something holds."""
    begun = time.monotonic()
    while not holds():
        if time.monotonic() - begun > WITHIN_S_MAX:
            raise Broken(f"not within {WITHIN_S_MAX} s: {what}")
        time.sleep(0.05)


def off_by(home, seconds):
    """The environment of a program whose wall clock is so many seconds ahead."""
    library = os.path.join(home, f"off{seconds}.so")
    make = ["cc", "-shared", "-fPIC", f"-DOFF_S={seconds}", "-x", "c", "-", "-o", library]
    subprocess.run(make, input=OFF, text=True, check=True)
    return {"LD_PRELOAD": library}


def metric(server, name):
    answer = server.client().ask("GET", "/metrics")
    values = [line.split()[1] for line in answer.body.decode().splitlines() if line.startswith(name + " ")]
    return float(values[0]) if values else 0.0


def clocks(options):
    """Servers whose clocks are minutes apart: each of them, when it leads, expires, and the times are PostgreSQL's."""
    with Home() as home:
        cluster = Cluster(home).init().start()
        servers = [Server(options.server, store=cluster.url(), environment=off_by(home, off)) for off in CLOCKS_OFF_S]
        try:
            # The first one leads until it ends.
            for server in servers:
                server.start()
            for turn, leader in enumerate(servers):
                for server in servers[turn:]:
                    client = server.client()
                    if metric(server, "blackboard_clock_held"):
                        raise Broken("the difference to the database's clock is taken for a jump")
                    name = f"/v1/sessions/claimed-{turn}-{server.address[1]}"
                    client.ask("POST", name + "/requests", {"job": 1})
                    claimed = client.ask("PUT", name + "/requests/1/claim", {"ttl": "60s"}, x_agent_id="w").json()
                    ends = datetime.datetime.fromisoformat(claimed["claim"]["expires_at"]).timestamp()
                    now = float(cluster.sql("SELECT extract(epoch FROM clock_timestamp())"))
                    if abs(ends - 60 - now) > CLOCK_ERROR_S_MAX:
                        raise Broken(f"a claim of 60 s ends {ends - now:.0f} s after the database's time")
                client = leader.client()
                client.ask("PUT", f"/v1/sessions/brief-{turn}", {"settings": {"ttl": "1s"}})
                client.ask("PUT", f"/v1/sessions/long-{turn}/state/x?ttl=1s", "1")
                live = "SELECT count(*) FROM session WHERE is_live AND (name LIKE 'brief%' OR next_due < \
                    extract(epoch FROM clock_timestamp()) * 1000 + 5000)"
                within(f"the leader number {turn} expires", lambda: cluster.sql(live) == "0")
                leader.kill()
        finally:
            for server in servers:
                if server.process:
                    server.kill()
            cluster.stop()
    print(f"clocks: servers {CLOCKS_OFF_S} s off PostgreSQL led in turn, expired and claimed by its time", flush=True)


class Stream:
    """The events of a session, as a client that listens all the time gets them."""

    def __init__(self, server, session):
        self.names = []
        self.connection = http.client.HTTPConnection(*server.address, timeout=60)
        self.connection.request("GET", f"/v1/sessions/{session}/events", headers={"accept": "text/event-stream"})
        self.answer = self.connection.getresponse()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        try:
            while line := self.answer.readline():
                if line.startswith(b"event: "):
                    self.names.append(line[7:].strip().decode())
        except (OSError, ValueError, http.client.HTTPException):
            pass


def lose(primary, standby, write):
    """Writes what the standby does not get, and promotes it."""
    caught_up = "SELECT pg_last_wal_replay_lsn() >= '{}'"
    end = primary.sql("SELECT pg_current_wal_flush_lsn()")
    within("the standby follows", lambda: standby.sql(caught_up.format(end)) == "t")
    standby.sql("ALTER SYSTEM SET primary_conninfo = ''")
    standby.sql("SELECT pg_reload_conf()")
    within("the standby stops to follow", lambda: standby.sql("SELECT count(*) FROM pg_stat_wal_receiver") == "0")
    written = write()
    primary.kill()
    standby.promote()
    return written


def lagged(options):
    """A standby that lacks acknowledged commits is promoted: no server shows them, and no condition holds by them."""
    sessions = ("equal", "grown", "short")
    with Home() as home:
        settings = ["wal_level=replica", "max_wal_senders=4"]
        primary = Cluster(home, "primary", settings).init().start()
        standby = Cluster(home, "standby", settings).follow(primary).start()
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        store = f"postgres://blackboard@{hosts}/postgres?target_session_attrs=read-write"
        one, other = servers = [Server(options.server, store=store, log="off") for _ in range(2)]
        try:
            for server in servers:
                server.start()
            a, b = one.client(), other.client()
            for session in sessions:
                a.ask("PUT", f"/v1/sessions/{session}/state/x", "1")
                b.ask("GET", f"/v1/sessions/{session}/state/x")
            streams = {session: Stream(one, session) for session in sessions}

            def write():
                a.ask("PUT", "/v1/sessions/new/state/x", "2")
                return {session: a.ask("PUT", f"/v1/sessions/{session}/state/x", "2") for session in sessions}

            written = lose(primary, standby, write)
            within("writes go on", lambda: b.ask("PUT", "/v1/sessions/equal/state/x", "3").status == 200)
            for n in (3, 4, 5):
                if b.ask("PUT", "/v1/sessions/grown/state/x", str(n)).status != 200:
                    raise Broken("a write after the promotion failed")
            test = {"if": [{"path": "x", "equals": 2}], "then": [{"put": "x", "value": 9}]}
            if a.ask("POST", "/v1/sessions/equal/transactions", test).status == 200 and \
                    b.ask("GET", "/v1/sessions/equal/state/x").json() == 9:
                raise Broken("a transaction went by a condition that holds on lost commits alone")
            for session, value in zip(sessions, (3, 5, 1)):
                lost = written[session].headers["etag"]
                shown = [client.ask("GET", f"/v1/sessions/{session}/state/x") for client in (a, b)]
                if [answer.json() for answer in shown] != [value, value]:
                    raise Broken(f"{session}: the servers show {[answer.body for answer in shown]} and not {value}")
                heads = {(answer.headers["etag"], answer.headers["blackboard-revision"]) for answer in shown}
                if len(heads) != 1:
                    raise Broken(f"{session}: the servers differ: {heads}")
                for client in (a, b):
                    status = client.ask("PUT", f"/v1/sessions/{session}/state/x", "8", if_match=lost).status
                    if status != 412:
                        raise Broken(f"{session}: a write under a lost commit's tag is {status}")
            for client in (a, b):
                if client.ask("GET", "/v1/sessions/new").status != 404:
                    raise Broken("a session that was lost is shown")
            for session, stream in streams.items():
                within(f"the stream of {session} begins anew", lambda names=stream.names: "resync" in names)
            lost_heads = [metric(server, "blackboard_store_lost_heads_total") for server in servers]
            if lost_heads != [len(sessions) + 1, 0]:
                raise Broken(f"the servers count {lost_heads} lost heads")
        finally:
            for server in servers:
                if server.process:
                    server.kill()
            for cluster in (standby, primary):
                cluster.stop()
    print("lagged: a standby without the last commits was promoted; they are shown by no server, and hold for no "
          "condition", flush=True)


# What is tried without the writers.
SCENES = {"clocks": clocks, "lagged": lagged}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--server", default="target/debug/blackboard")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--pause", type=float, default=5)
    parser.add_argument("--timed", action="store_true", help="judge the times too: not on a noisy machine")
    parser.add_argument("--only", default=",".join([*TRIALS, *SCENES]))
    options = parser.parse_args()
    options.server, options.standby = os.path.abspath(options.server), None
    try:
        for name in options.only.split(","):
            if name in SCENES:
                SCENES[name](options)
            else:
                try_out(name, options)
    except Broken as broken:
        sys.exit(f"broken: {broken}")


if __name__ == "__main__":
    main()
