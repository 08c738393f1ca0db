"""Adapter for LangGraph: `BlackboardSaver` stores the checkpoints of graphs, `BlackboardStore` their long-term memory.

Layout
------
A thread is one session, and so one unit of commit, fork, deletion and export. Its name is `langgraph:` and the thread's
id; characters that no name has are percent-encoded, and an id beyond 256 bytes is `~` and its SHA-256. Its state is

    layout       1, the version of this layout
    latest       {namespace: id}, the greatest id of a namespace's checkpoints
    checkpoints  {namespace: {id: {"record": …, "writes": {task: {index: …}}}}}
    runs         {run id: true}, the runs that checkpoints name
    thread       the thread's id, where the session's name is a hash
    langgraph    the thread as people see it, which no saver reads but for pending interrupts; see `display`

A record has the checkpoint without its values, the metadata, the parent's id, and a reference for each value. A value
of up to 1 KiB stands in its reference; a longer one is a blob, stored once in the session by its hash, which the server
keeps while a reference names it. A channel that has not changed takes the parent's reference without being serialized.
Writes may come before their checkpoint. The root namespace is `:`; other keys stand as they are but for
percent-encoding.

A `put` is its new blobs and then one transaction, with the condition that `latest` is as it was; `put_writes` likewise
with the condition that the task's writes are. `prune` and `delete_for_runs` are one transaction a thread, with the tag
of all its checkpoints. `copy_thread` is a fork. `settings.history` is one second: the server frees what is deleted.
A blob that nothing names any more is deleted an hour after its upload.

The layout of the store is in `store`.

Bounds: 32 MiB for one value, serialized; 7 MiB for a checkpoint without its long values; 16 MiB of state for a thread,
which is some 10,000 checkpoints of a small graph between two prunings; 100,000 blobs and 2 GiB of them for a thread.
"""

from .display.answers import aresume, resume
from .errors import DeltaChainBroken, IncompatibleLayout, TooManyConflicts, ValueTooLarge
from .items import SearchUnavailable
from .saver import BlackboardSaver
from .store import BlackboardStore

__all__ = [
    "BlackboardSaver",
    "BlackboardStore",
    "DeltaChainBroken",
    "IncompatibleLayout",
    "SearchUnavailable",
    "TooManyConflicts",
    "ValueTooLarge",
    "aresume",
    "resume",
]
