#!/usr/bin/env python3
"""Blackboard with two agents: one asks and plans, the other answers and acts.

Needs only Python 3 and a running server:

    python3 examples/agent.py [http://127.0.0.1:8733]

Where the server asks for a token it is taken from BLACKBOARD_TOKEN.
"""

import json
import os
import sys
import urllib.error
import urllib.request
import uuid
from urllib.parse import quote, urlencode


class Refused(Exception):
    """The server refused a request. `code` is stable, the sentence is for people."""

    def __init__(self, problem):
        super().__init__(f"{problem['code']}: {problem['detail']}")
        self.code = problem["code"]


class Board:
    """One session as one agent sees it."""

    def __init__(self, server, session, agent):
        self.url = f"{server}/v1/sessions/{quote(session, safe='')}"
        self.agent = agent

    def call(self, method, path, body=None, query=None):
        """The answer's JSON."""
        url = self.url + path + ("?" + urlencode(query) if query else "")
        request = urllib.request.Request(url, method=method)
        if "BLACKBOARD_TOKEN" in os.environ:
            request.add_header("Authorization", "Bearer " + os.environ["BLACKBOARD_TOKEN"])
        request.add_header("X-Agent-ID", quote(self.agent, safe=""))
        data = None
        if body is not None:
            request.add_header("Content-Type", "application/json")
            data = json.dumps(body).encode()
        try:
            with urllib.request.urlopen(request, data) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as refusal:
            raise Refused(json.load(refusal)) from None

    def add(self, log, item):
        """Appends one item; its place in the log."""
        return self.call("POST", f"/{log}", item)["entries"][0]["seq"]

    def remember(self, item):
        """Appends to the agent's own memory."""
        return self.add(f"agents/{quote(self.agent, safe='')}/memory", item)

    def entries(self, log, **query):
        return self.call("GET", f"/{log}", query=query)["entries"]

    def answer(self, seq, text):
        """Answers a question, unless somebody else was first."""
        try:
            self.call("PUT", f"/questions/{seq}/answer", {"answer": text})
            return True
        except Refused as refusal:
            if refusal.code != "already-answered":
                raise
            return False

    def prompt(self, **query):
        """What to put into the content of a chat message."""
        return self.call("GET", "/prompt", query=query)


def main():
    server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8733"
    session = f"example-{uuid.uuid4()}"
    host = Board(server, session, "HostAgent")
    app = Board(server, session, "AppAgent")

    host.call("PUT", "", {"settings": {"history_keys": ["step", "agent", "action", "status"]}})
    host.add("requests", "Print the quarterly report")
    asked = host.add("questions", {"question": "Which printer?"})
    host.remember({"step": 1, "thought": "The printer is not named.", "cost": 0.02})

    print("answered by AppAgent: ", app.answer(asked, "The one on floor 2"))
    print("answered by HostAgent:", host.answer(asked, "Any"))

    actions = [("open the report", "CONTINUE"), ("print", "FAIL"), ("print", "FINISH")]
    for step, (action, status) in enumerate(actions, 1):
        item = {"step": step, "agent": "AppAgent", "action": action, "status": status, "ms": 40 * step}
        app.add("trajectories", item)
    app.remember({"step": 3, "thought": "The second try worked.", "cost": 0.01})

    for entry in host.entries("trajectories", status="FAIL", keys="step,action"):
        print("failed:", entry["agent"], entry["item"])
    try:
        app.add("requests", 42)
    except Refused as refusal:
        print("refused:", refusal)

    # One prompt for the model: the board, and what this agent remembers of its own steps.
    parts = host.prompt(include="questions,requests,trajectories,memory:HostAgent")
    for part in parts:
        print(part["text"])


if __name__ == "__main__":
    try:
        main()
    except Refused as refusal:
        sys.exit(f"the server refuses: {refusal}")
    except urllib.error.URLError as error:
        sys.exit(f"cannot reach the server: {error.reason}; start it with: cargo run --release -- serve")
