#!/usr/bin/env python3
"""Checker of a history of messages: what was sent, what agents got and were answered, and the server's commits.

    tests/reliability/message_history.py FILE

It knows the contract, and imports nothing of the server, its clients or the load. FILE has a JSON object a line:

    terms      agents (the kind of each)
    sent       to, by, seq, text, revision; from the answer to whoever sent it. A text is of one message
    delivered  agent, seq, text, at; from the agent, before it asks to acknowledge
    webhook    agent, id, seqs, way; from the receiver
    acked      agent, seq, acked_at; from an answer to the agent
    killed     agent, kind, at
    down       begun, ended; the server was not there
    commit     revision, at, agent, changes; as in the server's events, read after the last start
    left       agent, unacked (their number), acked (by seq, when); as the agent's log shows in the end

Each message that was acknowledged to its sender stands in one commit, comes to its agent at least once and to no other, and
has one acknowledgement, by its agent and after it came. A webhook that has the id of another holds the same messages.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from datetime import datetime

# Times of commits are cut to milliseconds.
ROUNDING_S = 0.002


class Wrong(RuntimeError):
    """A history that the contract does not allow."""


def moment(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


class Mail:
    """Judge of a history."""

    def __init__(self, records):
        self.by = defaultdict(list)
        for record in records:
            self.by[record["what"]].append(record)
        [terms] = self.by["terms"]
        self.agents = terms["agents"]
        # By agent and seq: the text, revision and author of each message; and the time of its acknowledgement.
        self.made, self.acked = {}, {}
        self.counts = Counter()

    def judge(self):
        self.judge_commits()
        self.judge_senders()
        self.judge_deliveries()
        self.judge_answers()
        self.judge_webhooks()
        self.judge_end()
        return self.counts

    def judge_commits(self):
        texts = set()
        for place, commit in enumerate(self.by["commit"], 1):
            if commit["revision"] != place:
                raise Wrong(f"revision {place} is not there")
            for change in commit["changes"]:
                agent = self.agent(change)
                if agent is None:
                    continue
                if change["kind"] == "appended":
                    for entry in change["entries"]:
                        text = entry["item"]["text"]
                        if text in texts:
                            raise Wrong(f"revision {place}: {text!r} is there twice")
                        texts.add(text)
                        self.made[agent, entry["seq"]] = (text, place, commit.get("agent"))
                elif change["kind"] == "acked":
                    self.acknowledge(commit, agent, change["seq"])
                else:
                    raise Wrong(f"revision {place}: nobody asked for {change}")

    def agent(self, change):
        """The agent whose messages a change is of."""
        log = change.get("log", "")
        if log.startswith("agents/") and log.endswith("/messages"):
            return log.removeprefix("agents/").removesuffix("/messages")
        return None

    def acknowledge(self, commit, agent, seq):
        which = f"revision {commit['revision']}: message {seq} to {agent}"
        if (agent, seq) not in self.made:
            raise Wrong(f"{which} is acknowledged, and was not sent")
        if (agent, seq) in self.acked:
            raise Wrong(f"{which} is acknowledged twice")
        if commit.get("agent") != agent:
            raise Wrong(f"{which} is acknowledged by {commit.get('agent')}")
        self.acked[agent, seq] = commit["at"]

    def judge_senders(self):
        """What senders were answered stands in the commits, and nothing else."""
        sent = {(note["to"], note["seq"]): (note["text"], note["revision"], note["by"]) for note in self.by["sent"]}
        for which, message in sent.items():
            if self.made.get(which) != message:
                raise Wrong(f"an acknowledged message is lost: {which}, {message}; there is {self.made.get(which)}")
        nobodys = self.made.keys() - sent.keys()
        if nobodys:
            raise Wrong(f"nobody sent {sorted(nobodys)[:5]}")
        self.counts["messages"] = len(sent)

    def judge_deliveries(self):
        first = {}
        for note in self.by["delivered"]:
            which = (note["agent"], note["seq"])
            if which not in self.made or self.made[which][0] != note["text"]:
                raise Wrong(f"{note['agent']} got what was not sent to it: {note}")
            first.setdefault(which, note["at"])
        never = self.made.keys() - first.keys()
        if never:
            raise Wrong(f"{len(never)} messages never came: {sorted(never)[:5]}")
        for which, at in self.acked.items():
            if moment(at) < first[which] - ROUNDING_S:
                raise Wrong(f"message {which} is acknowledged at {at}, before it came")
        self.counts["deliveries again"] = len(self.by["delivered"]) - len(first)
        for (agent, _), _ in first.items():
            self.counts[f"by {self.agents[agent]}"] += 1

    def judge_answers(self):
        """What agents were answered is what stands in the commits."""
        for note in self.by["acked"]:
            at = self.acked.get((note["agent"], note["seq"]))
            if at is None or moment(at) != moment(note["acked_at"]):
                raise Wrong(f"an acknowledgement is lost or changed: {note}; there is {at}")
        left = self.made.keys() - self.acked.keys()
        if left:
            raise Wrong(f"not acknowledged: {sorted(left)[:5]}")

    def judge_webhooks(self):
        held = {}
        for note in self.by["webhook"]:
            if held.setdefault((note["agent"], note["id"]), note["seqs"]) != note["seqs"]:
                raise Wrong(f"two webhooks of one id: {note}, {held[note['agent'], note['id']]}")
        self.counts["webhooks"], self.counts["webhooks again"] = len(held), len(self.by["webhook"]) - len(held)

    def judge_end(self):
        """The logs show it so in the end."""
        shown = {}
        for note in self.by["left"]:
            if note["unacked"]:
                raise Wrong(f"{note['unacked']} messages to {note['agent']} are shown as not acknowledged")
            shown |= {(note["agent"], int(seq)): at for seq, at in note["acked"].items()}
        if shown != self.acked:
            raise Wrong(f"the logs show other acknowledgements: {sorted(shown.items() ^ self.acked.items())[:5]}")
        self.counts["kills of servers"] = len(self.by["down"])
        for kill in self.by["killed"]:
            self.counts[f"kills of {kill['kind']}"] += 1


def judge(records):
    """Raises Wrong if the history is not allowed; else what there was."""
    return Mail(records).judge()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("file", type=argparse.FileType())
    given = parser.parse_args()
    try:
        counts = judge([json.loads(line) for line in given.file])
    except Wrong as wrong:
        sys.exit(f"wrong: {wrong}")
    print(", ".join(f"{count:,} {what}" for what, count in sorted(counts.items())))


if __name__ == "__main__":
    main()
