"""Retention: which checkpoints of a thread go, by pruning or with their runs, in one commit a thread."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from . import names
from .chains import Record, chain, cut, delta_channels
from .errors import DeltaChainBroken, TooManyConflicts
from .exchange import Exchange
from .sessions import TRIES_MAX, Operation
from .threads import Threads, entries

STRATEGIES = ("keep_latest", "delete")

Doomed = dict[str, set[str]]
"""The ids that go, by namespace."""
Stored = Mapping[str, Mapping[str, Record]]
Choice = Callable[[Stored], Doomed]


def prune(threads: Threads, thread_id: str, strategy: str) -> Exchange[None]:
    """Prune a thread: to the latest checkpoint of each namespace with what its delta channels need, or altogether."""
    if strategy == "delete":
        yield from threads.delete(thread_id)
    else:
        yield from _remove(threads, threads.session(thread_id), _all_but_latest)


def delete_runs(threads: Threads, run_ids: Collection[str]) -> Exchange[None]:
    """Delete the checkpoints of some runs in all threads.

    Raises DeltaChainBroken before anything is deleted where a checkpoint that stays needs one of them.
    """
    wanted = set(run_ids)
    concerned = []
    for address in (yield from threads.addresses(None)) if wanted else []:
        runs = yield from threads.sessions.read(address.session, "runs")
        if runs is not None and wanted & {names.text_of(key) for key in runs.value}:
            concerned.append(address.session)
    doomed = {}
    for session in concerned:
        doomed[session] = _checked(session, (yield from threads.namespaces(session)), wanted)
    for session in concerned:
        if threads.display is not None:
            # Before the commit, after which nobody would know of them.
            yield from threads.display.erase(session, doomed[session])
        yield from _remove(threads, session, partial(_checked, session, run_ids=wanted))


def _remove(threads: Threads, session: str, choose: Choice) -> Exchange[None]:
    """Delete what is chosen of a session, in one commit that nobody else's came before."""
    for _ in range(TRIES_MAX):
        read = yield from threads.sessions.read(session, "checkpoints")
        if read is None:
            return
        stored = entries(read.value)
        doomed = choose(stored)
        if not any(doomed.values()):
            return
        same = {"path": "checkpoints", "etag": read.etag}
        operations = _operations(stored, doomed)
        if threads.display is not None:
            operations += yield from threads.display.removal(session, doomed)
        if (yield from threads.sessions.commit(session, [same], operations, make=False)):
            threads.forget(session)
            return
    raise TooManyConflicts(f"session {session!r} was written by others {TRIES_MAX} times in a row")


def _operations(stored: Stored, doomed: Doomed) -> list[Operation]:
    """The operations that delete, a merge patch for all checkpoints and two for what is known of them."""
    gone: dict[str, Any] = {}
    latest: dict[str, Any] = {}
    runs = {}
    for namespace, held in stored.items():
        left = {checkpoint_id: entry for checkpoint_id, entry in held.items() if checkpoint_id not in doomed[namespace]}
        recorded = [checkpoint_id for checkpoint_id, entry in left.items() if "record" in entry]
        here = names.key(namespace)
        gone[here] = {names.key(checkpoint_id): None for checkpoint_id in doomed[namespace]} if left else None
        latest[here] = max(recorded, default=None)
        found = {left[checkpoint_id]["record"]["metadata"].get("run_id") for checkpoint_id in recorded}
        runs.update({names.key(run_id): True for run_id in found if isinstance(run_id, str)})
    patches = [{"patch": "checkpoints", "value": gone}, {"patch": "latest", "value": latest}]
    return [*patches, {"put": "runs", "value": runs}]


def _all_but_latest(stored: Stored) -> Doomed:
    """All but the latest checkpoint of each namespace and its chain. Writes that came before their checkpoint stay."""
    doomed: Doomed = {}
    for namespace, held in stored.items():
        recorded = _records(held)
        newest = max(recorded, default="")
        kept = chain(recorded, newest, delta_channels(recorded.values())) if recorded else set()
        doomed[namespace] = {one for one in held if one not in kept and (one in recorded or one < newest)}
    return doomed


def _checked(session: str, stored: Stored, run_ids: Collection[str]) -> Doomed:
    """The checkpoints of some runs. Raises DeltaChainBroken."""
    doomed: Doomed = {}
    for namespace, held in stored.items():
        recorded = _records(held)
        doomed[namespace] = {one for one, record in recorded.items() if record["metadata"].get("run_id") in run_ids}
        if broken := cut(recorded, doomed[namespace]):
            raise DeltaChainBroken(
                f"checkpoint {broken!r} in session {session!r} needs checkpoints of these runs for its delta channels"
            )
    return doomed


def _records(held: Mapping[str, Record]) -> dict[str, Record]:
    return {checkpoint_id: entry["record"] for checkpoint_id, entry in held.items() if "record" in entry}


def checked_strategy(strategy: str) -> str:
    """A strategy of pruning. Raises ValueError for another one."""
    if strategy not in STRATEGIES:
        raise ValueError(f"prune has the strategies {' and '.join(STRATEGIES)}, not {strategy!r}")
    return strategy
