"""Messages to ten agents, of which the server, webhooks and bridges are killed at random.

An agent receives by one of the ways of `receivers.py`: its own long poll, the webhooks of `blackboard forward`, or the channel
of `blackboard mcp`. It notes what it got, then acknowledges. Messages are sent one by one, some as a batch of more than the
attention shows. What everybody sent, got and was answered is a history, which `message_history.py` judges together with the
server's commits; then it must reject that history with each of the faults of `message_faults.py`.
"""

import http.client
import json
import threading
import time

import load
import message_faults
import message_history
import receivers

SESSION = "mail"
AGENTS = 10
MESSAGES_IN_SHORT, MESSAGES_IN_LONG = 150, 1_000
# Messages a second, and how many of them are sent as one batch of so many.
PACE = 25
BATCH, BATCHES = 30, 0.02
# The time between two kills, and how many of them are the server's.
KILLS_S = (0.3, 1.5)
SERVERS = 0.3
PAUSE_S = 0.05
END_S_MAX = 300


class Messages:
    """Messages that each come at least once and are acknowledged once, whatever is killed."""

    name = "messages"
    short, long = 1, 5

    def __init__(self, place):
        self.place = place

    def piece(self, number):
        count = MESSAGES_IN_LONG if self.place.is_long else MESSAGES_IN_SHORT
        server = self.place.server(self.place.path("data"))
        with server:
            server.port = server.address[1]
            run = Run(self.place, server, number)
            try:
                history = run.history(count)
            finally:
                run.end()
        with open(self.place.path("history"), "w") as file:
            file.writelines(json.dumps(record) + "\n" for record in history)
        counts = message_history.judge(history)
        counts["faults rejected"] = message_faults.judge(history)
        self.place.sound(self.place.path("data"))
        return counts


class Run:
    """One load: senders, receivers, and what kills."""

    def __init__(self, place, server, number):
        self.server, self.notes = server, receivers.Notes()
        self.chance = place.chance("messages", number)
        self.stopping = threading.Event()
        self.client, self.address = server.client(), server.address
        # The session begins with a commit of nobody, so that everybody may wait in it from the start.
        load.expect(self.ask("PUT", f"/v1/sessions/{SESSION}", {}), 200, 201)
        kinds = receivers.kinds(place)
        self.agents = []
        for place_of in range(AGENTS):
            kind = kinds[place_of % len(kinds)]
            chance = place.chance("messages", number, place_of)
            self.agents.append(kind(place, server.address, f"agent-{place_of}", SESSION, self.notes, chance))
        self.notes.add("terms", agents={agent.name: agent.kind for agent in self.agents})

    def ask(self, method, path, body=None, **headers):
        """Asks until there is an answer."""
        while True:
            try:
                answer = self.client.ask(method, path, body, **headers)
            except (OSError, http.client.HTTPException):
                time.sleep(PAUSE_S)
                continue
            if answer.status != 503:
                return answer
            time.sleep(PAUSE_S)

    def history(self, count):
        for agent in self.agents:
            agent.start()
        killer = threading.Thread(target=self.kill, daemon=True)
        killer.start()
        self.send(count)
        self.stopping.set()
        killer.join()
        commits = self.until_acknowledged(count)
        for agent in self.agents:
            agent.stop()
        commits += self.page(commits[-1]["revision"])
        for commit in commits:
            self.notes.add("commit", **commit)
        for agent in self.agents:
            log = f"/v1/sessions/{SESSION}/agents/{agent.name}/messages"
            entries = self.entries(log)
            left = len(self.entries(log, "&unacked=true"))
            self.notes.add("left", agent=agent.name, unacked=left, acked={entry["seq"]: entry.get("acked_at") for entry in entries})
        return self.notes.all

    def end(self):
        self.stopping.set()
        for agent in self.agents:
            agent.stop()

    def send(self, count):
        """Sends messages at the pace, each with a text of its own."""
        begun, sent = time.monotonic(), 0
        while sent < count:
            time.sleep(max(0, begun + sent / PACE - time.monotonic()))
            several = min(BATCH if self.chance.random() < BATCHES else 1, count - sent)
            to = self.chance.choice(self.agents).name
            texts = [f"message {sent + place}" for place in range(several)]
            by, key = f"sender-{self.chance.randrange(3)}", f"key-{sent}"
            path = f"/v1/sessions/{SESSION}/agents/{to}/messages"
            answer = self.ask("POST", path, [{"text": text} for text in texts], X_Agent_ID=by, Idempotency_Key=key)
            made = load.expect(answer, 201).json()
            for entry, text in zip(made["entries"], texts, strict=True):
                self.notes.add("sent", to=to, by=by, seq=entry["seq"], text=text, revision=made["revision"])
            sent += several

    def kill(self):
        """Kills the server or what carries messages, again and again."""
        chance = self.chance.__class__(self.chance.random())
        killed = [agent for agent in self.agents if agent.is_process]
        while not self.stopping.wait(chance.uniform(*KILLS_S)):
            victim = chance.choice(killed)
            if chance.random() < SERVERS:
                begun = time.time()
                self.server.kill()
                self.server.start()
                self.notes.add("down", begun=begun, ended=time.time())
            elif victim.kill():
                self.notes.add("killed", agent=victim.name, kind=victim.kind, at=time.time())

    def page(self, after, wait=""):
        path = f"/v1/sessions/{SESSION}/events?after={after}{wait}"
        return load.expect(self.ask("GET", path, Accept="application/json"), 200).json()["events"]

    def entries(self, log, filters=""):
        """All entries of a log that pass the filters."""
        entries, after, more = [], 0, True
        while more:
            page = load.expect(self.ask("GET", f"{log}?limit=1000&after={after}{filters}"), 200).json()
            entries, after, more = entries + page["entries"], page["next"], page["more"]
        return entries

    def until_acknowledged(self, count):
        """The commits up to the one that acknowledges the last message."""
        commits, left, end = [], count, time.monotonic() + END_S_MAX
        while left:
            page = self.page(commits[-1]["revision"] if commits else 0, "&wait=1s")
            commits += page
            left -= sum(change["kind"] == "acked" for commit in page for change in commit["changes"])
            broken = [why for agent in self.agents if (why := agent.broken)]
            if broken:
                raise load.Broken(broken[0])
            if time.monotonic() > end:
                raise load.Broken(f"{left} of {count} messages are not acknowledged")
        return commits
