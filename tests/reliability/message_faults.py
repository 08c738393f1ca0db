"""Faults put into a history of messages that was allowed, each of which its checker must reject for that reason."""

import copy

import message_history


def notes(history, what):
    return [record for record in history if record["what"] == what]


def changes(history, kind):
    """The changes of a kind in logs of messages, each with its commit."""
    commits = notes(history, "commit")
    found = [(commit, change) for commit in commits for change in commit["changes"] if change["kind"] == kind]
    return [(commit, change) for commit, change in found if change.get("log", "").endswith("/messages")]


def lost(history):
    """An acknowledged message is not there, nor is what came of it."""
    commit, change = next(found for found in changes(history, "appended") if len(found[1]["entries"]) == 1)
    commit["changes"].remove(change)
    agent, seq = change["log"].split("/")[1], change["entries"][0]["seq"]
    for commit, change in changes(history, "acked"):
        if (change["log"].split("/")[1], change["seq"]) == (agent, seq):
            commit["changes"].remove(change)


def doubled(history):
    """A repeated request is done twice."""
    commit, change = changes(history, "appended")[0]
    again = copy.deepcopy(change)
    for entry in again["entries"]:
        entry["seq"] += 1_000_000
    end = notes(history, "commit")[-1]
    history.append(end | {"revision": end["revision"] + 1, "agent": commit["agent"], "changes": [again]})


def never_came(history):
    first = notes(history, "delivered")[0]
    for note in notes(history, "delivered"):
        if (note["agent"], note["seq"]) == (first["agent"], first["seq"]):
            history.remove(note)


def anothers(history):
    """A message comes to an agent that it was not sent to."""
    note = notes(history, "delivered")[0]
    [terms] = notes(history, "terms")
    history.append(note | {"agent": next(agent for agent in terms["agents"] if agent != note["agent"])})


def acknowledged_twice(history):
    commit, _ = changes(history, "acked")[-1]
    history.append(commit | {"revision": notes(history, "commit")[-1]["revision"] + 1})


def acknowledged_by_another(history):
    commit, _ = changes(history, "acked")[0]
    commit["agent"] = "sender-0"


def acknowledged_early(history):
    for note in notes(history, "delivered"):
        note["at"] += 3_600


def acknowledgement_lost(history):
    commit, change = changes(history, "acked")[-1]
    commit["changes"].remove(change)


def another_time(history):
    """A repeated acknowledgement counts anew."""
    note = notes(history, "acked")[-1]
    note["acked_at"] = "2000-01-01T00:00:00.000Z"


def id_used_again(history):
    one = notes(history, "webhook")[0]
    other = next(note for note in notes(history, "webhook") if note["agent"] == one["agent"] and note["seqs"] != one["seqs"])
    other["id"] = one["id"]


def shown_unacknowledged(history):
    notes(history, "left")[0]["unacked"] = 1


def log_forgot(history):
    left = next(note for note in notes(history, "left") if note["acked"])
    left["acked"].popitem()


# Each with a part of the reason.
FAULTS = {
    lost: "an acknowledged message is lost",
    doubled: "is there twice",
    never_came: "never came",
    anothers: "got what was not sent to it",
    acknowledged_twice: "is acknowledged twice",
    acknowledged_by_another: "is acknowledged by",
    acknowledged_early: "before it came",
    acknowledgement_lost: "an acknowledgement is lost",
    another_time: "an acknowledgement is lost or changed",
    id_used_again: "two webhooks of one id",
    shown_unacknowledged: "are shown as not acknowledged",
    log_forgot: "the logs show other",
}


def judge(history):
    """The number of faults, all of which are rejected."""
    for fault, reason in FAULTS.items():
        changed = copy.deepcopy(history)
        fault(changed)
        try:
            message_history.judge(changed)
        except message_history.Wrong as wrong:
            if reason in str(wrong):
                continue
            raise RuntimeError(f"the fault {fault.__name__} is taken for another: {wrong}") from wrong
        raise RuntimeError(f"the fault {fault.__name__} is not noticed")
    return len(FAULTS)
