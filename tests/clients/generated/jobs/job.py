"""The job that every generated client does, of which job.ts is the same for TypeScript."""

import sys

SERVER = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8733"
PATH = "tasks/counts"
ITEMS = [{"step": 1, "note": {"deep": [True]}}, {"step": 2}, {"text": "three"}]


def follow(read):
    """The revisions of all commits, by pages: `read` returns the events, the next cursor, and whether there are more."""
    revisions, after, more = [], 0, True
    while more:
        events, after, more = read(after)
        revisions += [event.revision for event in events]
    return revisions


def report(name, seqs, items, late, value, answer, revisions):
    """Compares what a job found out; `late` is the status and the code of an update with a tag that is no longer current."""
    found = (seqs, items, late, value, answer, revisions)
    expected = ([1, 2, 3], ITEMS, (412, "precondition-failed"), {"pages": 2}, "The one on floor 3", [1, 2, 3, 4, 5, 6])
    assert found == expected, f"{name}: {found} is not {expected}"
    print(f"{name}: appends, reads, updates with a condition, answers, follows")
