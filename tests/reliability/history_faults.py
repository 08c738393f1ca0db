"""Faults put into a history that was allowed, each of which its checker must reject for that reason."""

import copy

import task_history


def commits(history):
    return [record for record in history if record["what"] == "commit"]


def changes(history, kind):
    """The changes of a kind, each with its commit."""
    return [(commit, change) for commit in commits(history) for change in commit["changes"] if change["kind"] == kind]


def notes(history, what):
    return [record for record in history if record["what"] == what]


def claims(history):
    """The claims that are no renewals."""
    return [(commit, change) for commit, change in changes(history, "claimed") if change["fence"] == commit["revision"]]


def done_twice(history):
    commit, _ = changes(history, "finished")[0]
    history.append(commit | {"revision": commits(history)[-1]["revision"] + 1})


def lost(history):
    """An acknowledged end is not there."""
    commit, change = changes(history, "finished")[-1]
    commit["changes"].remove(change)


def acknowledged_late(history):
    answer = next(note for note in notes(history, "answered") if note["status"] == 200)
    answer["revision"] += 1


def held_twice(history):
    """Two claims, one behind the other, are of one task."""
    (_, first), (_, second) = next(pair for pair in zip(claims(history), claims(history)[1:]) if follows(*pair))
    second["request"] = first["request"]


def follows(one, other):
    return other[0]["revision"] == one[0]["revision"] + 1


def over_cap(history):
    """The highest cap, if it was one less: also tells that the load reached it."""
    [terms] = notes(history, "terms")
    kind = max(terms["caps"], key=terms["caps"].get)
    terms["caps"][kind] -= 1


def early(history):
    next(note for note in notes(history, "posted") if note["delay_s"])["delay_s"] += 60


def early_again(history):
    next(note for note in notes(history, "worked") if note["end"] == "failed")["delay_s"] += 60


def never_due(history):
    commit, change = changes(history, "due")[0]
    commit["changes"].remove(change)


def stale(history):
    _, change = changes(history, "finished")[0]
    change["fence"] -= 1


def lapsed_early(history):
    [terms] = notes(history, "terms")
    terms["ttl_s"] *= 2


def out_of_order(history):
    """The task that waited longest, as if its priority was the highest."""
    [terms] = notes(history, "terms")
    posted = [note for note in notes(history, "posted") if note["kind"] not in terms["caps"] and not note["delay_s"]]
    first = {}
    for commit, change in claims(history):
        first.setdefault(change["request"], commit["revision"])
    longest = max(posted, key=lambda note: first[note["request"]] - note["revision"])
    longest["priority"] = 100


def missed(history):
    """A living worker never learns of a claim."""
    killed = {note["agent"] for note in notes(history, "killed")}
    history.remove(next(note for note in notes(history, "claimed") if note["agent"] not in killed))


def herd(history):
    """Each attempt wakes ten workers."""
    for note in notes(history, "offers"):
        note["count"] *= 10


def woken_for_nothing(history):
    history.append({"what": "empty", "agent": "worker-0", "wait_s": 2, "took_s": 0.5})


def idle(history):
    """Workers that begin to work when the claim is over."""
    for note in notes(history, "claimed"):
        note["at"] += 60


# Each with a part of the reason.
FAULTS = {
    done_twice: "is done twice",
    lost: "not done",
    acknowledged_late: "an acknowledged end is lost",
    held_twice: "it is claimed by",
    over_cap: "more than the cap",
    early: "too early",
    early_again: "too early",
    never_due: "too early",
    stale: "stale fence",
    lapsed_early: "lapsed; it is claimed",
    out_of_order: "out of order",
    missed: "claims without an answer",
    herd: "wake-ups",
    woken_for_nothing: "a wait was over early",
    idle: "parallelism",
}


def judge(history, least):
    """The number of faults, all of which are rejected."""
    for fault, reason in FAULTS.items():
        changed = copy.deepcopy(history)
        fault(changed)
        try:
            task_history.judge(changed, least)
        except task_history.Wrong as wrong:
            if reason in str(wrong):
                continue
            raise RuntimeError(f"the fault {fault.__name__} is taken for another: {wrong}") from wrong
        raise RuntimeError(f"the fault {fault.__name__} is not noticed")
    return len(FAULTS)
