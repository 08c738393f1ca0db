"""Agents that receive messages, each by one way to it, and acknowledge what they got."""

import base64
import hmac
import http.client
import http.server
import json
import os
import queue
import subprocess
import threading
import time

import load
from board_server import Client

PAUSE_S = 0.05
WAIT_S = 2
KEY = bytes(range(32))
SECRET = "whsec_" + base64.b64encode(KEY).decode()
# What a receiver of webhooks does with one: takes it before or after its answer, answers with a failure, or is gone.
TAKEN, AWAKE, BUSY, GONE = "taken", "awake", "busy", "gone"
WAYS = [TAKEN] * 7 + [AWAKE, BUSY, GONE]
# The exit code of a command whose server cannot be reached at its start.
UNREACHED = 3
SIGKILL = -9


class Notes:
    """What happened, noted by several threads."""

    def __init__(self):
        self.all, self.lock = [], threading.Lock()

    def add(self, what, **facts):
        with self.lock:
            self.all.append({"what": what, **facts})


class Agent:
    """An agent, which notes a message before it acknowledges it."""

    kind, is_process = None, False

    def __init__(self, place, address, name, session, notes, chance):
        self.place, self.address, self.name, self.notes, self.chance = place, address, name, notes, chance
        self.session, self.path = session, f"/v1/sessions/{session}/agents/{name}"
        self.stopping, self.inbox, self.threads = threading.Event(), queue.Queue(), []
        self.broken = None

    def start(self):
        self.begin(self.acknowledge_all)
        self.begin(self.receive)

    def begin(self, work):
        def guarded():
            try:
                work()
            except Exception as failure:
                self.broken = f"{self.name} ({self.kind}): {failure!r}"

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        self.threads.append(thread)

    def stop(self):
        self.stopping.set()
        self.inbox.put(None)
        for thread in self.threads:
            thread.join()

    def take(self, seq, text):
        """Notes a message, which is acknowledged beside."""
        self.notes.add("delivered", agent=self.name, seq=seq, text=text, at=time.time())
        self.inbox.put(seq)

    def acknowledge_all(self):
        client = Client(self.address, 60)
        while (seq := self.inbox.get()) is not None:
            self.acknowledge(client, seq)

    def acknowledge(self, client, seq):
        """Acknowledges until there is an answer. The number of requests is not noted: one may have been done unanswered."""
        while not self.stopping.is_set():
            answer = asked(client, "PUT", f"{self.path}/messages/{seq}/ack", X_Agent_ID=self.name)
            if answer is None or answer.status == 503:
                time.sleep(PAUSE_S)
                continue
            load.expect(answer, 200)
            self.notes.add("acked", agent=self.name, seq=seq, acked_at=answer.json()["acked_at"])
            return

    def receive(self):
        raise NotImplementedError


def asked(client, method, path, **headers):
    """An answer, or nothing if the server is not there."""
    try:
        return client.ask(method, path, **headers)
    except (OSError, http.client.HTTPException):
        return None


class Poll(Agent):
    """Waits for its attention by its tag."""

    kind = "poll"

    def receive(self):
        client, tag, taken = Client(self.address, 60), "", set()
        while not self.stopping.is_set():
            path = f"{self.path}/attention?include=messages&wait={WAIT_S}s"
            answer = asked(client, "GET", path, X_Agent_ID=self.name, If_None_Match=tag or '"none"')
            if answer is None or answer.status == 503:
                time.sleep(PAUSE_S)
                continue
            load.expect(answer, 200, 304)
            if answer.status == 200:
                tag = answer.headers["etag"]
                for entry in answer.json()["messages"]["newest"]:
                    if entry["seq"] not in taken:
                        taken.add(entry["seq"])
                        self.take(entry["seq"], entry["item"]["text"])


class Carried(Agent):
    """Receives from a process, which is started again whenever it is killed."""

    is_process = True

    def __init__(self, *what):
        super().__init__(*what)
        self.process, self.lock = None, threading.Lock()

    def kill(self):
        """Kills the process; whether there was one."""
        with self.lock:
            is_there = self.process is not None and self.process.poll() is None
            if is_there:
                self.process.kill()
            return is_there

    def stop(self):
        self.stopping.set()
        self.kill()
        super().stop()

    def started(self, *words, **pipes):
        """A command of the binary, unless this agent stops."""
        environment = {name: value for name, value in os.environ.items() if not name.startswith("BLACKBOARD_")}
        environment |= {"BLACKBOARD_URL": "http://{}:{}".format(*self.address), "BLACKBOARD_WEBHOOK_SECRET": SECRET}
        environment |= {"HOME": self.place.home, "BLACKBOARD_AGENT": self.name}
        with self.lock, open(self.place.path(f"{self.name}.log"), "a") as log:
            if not self.stopping.is_set():
                self.process = subprocess.Popen(
                    [self.place.binary, *words], stderr=log, env=environment, text=True, **pipes
                )
        return self.process

    def ended(self, process):
        """Waits for the process to end, as nothing but a kill may make it do once it has begun."""
        code = process.wait()
        if code not in (SIGKILL, UNREACHED) and not self.stopping.is_set():
            raise load.Broken(f"the command ended with {code}; {self.place.path(self.name)}.log says why")
        time.sleep(PAUSE_S)


class Forward(Carried):
    """Has webhooks of `blackboard forward`."""

    kind = "forward"

    def receive(self):
        agent = self

        class Hook(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                agent.hooked(self)

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hook)
        server.daemon_threads = True
        self.begin(server.serve_forever)
        url = f"http://127.0.0.1:{server.server_address[1]}/"
        words = ("forward", self.session, "--attention", self.name, "--to", url, "--attempts", "10000")
        try:
            while not self.stopping.is_set():
                process = self.started(*words, "--cursor", self.place.path(f"{self.name}.cursor"))
                self.ended(process)
        finally:
            server.shutdown()
            server.server_close()

    def hooked(self, request):
        """Takes a webhook, in one of the ways."""
        body = request.rfile.read(int(request.headers["content-length"]))
        id, at = request.headers["webhook-id"], request.headers["webhook-timestamp"]
        mac = base64.b64encode(hmac.digest(KEY, f"{id}.{at}.".encode() + body, "sha256")).decode()
        if request.headers["webhook-signature"] != f"v1,{mac}":
            self.broken = f"the signature of {id} is not right"
        messages = json.loads(body)["data"]["messages"]["newest"]
        way = self.chance.choice(WAYS)
        self.notes.add("webhook", agent=self.name, id=id, seqs=[entry["seq"] for entry in messages], way=way)
        if way in (TAKEN, AWAKE):
            for entry in messages:
                self.take(entry["seq"], entry["item"]["text"])
        request.close_connection = way == GONE
        if way != GONE:
            request.send_response(204 if way == TAKEN else 503)
            request.send_header("content-length", "0")
            request.end_headers()


class Channel(Carried):
    """Has notifications of the channel of `blackboard mcp`."""

    kind = "channel"

    def receive(self):
        words = ("mcp", "--channel", "--session", self.session, "--agent", self.name)
        while not self.stopping.is_set():
            process = self.started(*words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for line in self.lines(process):
                self.read(json.loads(line))
            self.ended(process)

    def lines(self, process):
        """Begins as a host does, and returns what comes."""
        client = {"name": "reliability", "version": "1"}
        first = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
        try:
            for message in ({"id": 1, "method": "initialize", "params": first}, {"method": "notifications/initialized"}):
                process.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
                process.stdin.flush()
        except BrokenPipeError:
            return iter(())
        # A line that a kill cut is none.
        return (line for line in process.stdout if line.endswith("\n"))

    def read(self, message):
        if message.get("method") != "notifications/claude/channel":
            return
        params = message["params"]
        if params["meta"]["kind"] == "message":
            self.take(int(params["meta"]["seq"]), params["content"])


def kinds(place):
    """The ways that this binary has: a way of which there is more has more agents."""
    has_channel = "--channel" in place.command("mcp", "--help").stdout
    return [Poll, Forward, *([Channel] if has_channel else []), Forward]
