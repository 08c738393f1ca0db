"""Folds: the view of a channel after a further write, for channels whose value a checkpoint does not have.

A `DeltaChannel` stores its writes, and its reducer is the graph's. These are the two kinds that agents use: messages,
which replace and remove one another by id, and mappings, in which None deletes. Other lists grow, other values replace.
"""

from __future__ import annotations

from typing import Any

from .views import CUT, ITEMS_MAX, View

_REMOVE_ALL = "__remove_all__"


def fold(before: View, write: View) -> View:
    """The view of a channel after a write."""
    if isinstance(write, dict) and write.get("type") == "__overwrite__" and "value" in write:
        return write["value"]
    if isinstance(write, dict) and "role" not in write and (before is None or isinstance(before, dict)):
        return _mapping(before or {}, write)
    if before is None or isinstance(before, list):
        return _list(before or [], write if isinstance(write, list) else [write])
    return write


def _mapping(before: dict[str, View], write: dict[str, View]) -> View:
    kept = {name: part for name, part in {**before, **write}.items() if part is not None}
    if len(kept) <= ITEMS_MAX:
        return kept
    return {**{name: kept[name] for name in [*kept][-ITEMS_MAX:]}, CUT: "more"}


def _list(before: list[View], write: list[View]) -> list[View]:
    made = [item for item in before if not _is_mark(item)]
    cut = len(made) < len(before)
    for item in write:
        named: Any = item.get("id") if isinstance(item, dict) and "role" in item else None
        if named is None:
            made.append(item)
        elif named == _REMOVE_ALL:
            made, cut = [], False
        elif item["role"] == "remove":
            made = [other for other in made if not _has(other, named)]
        elif any(_has(other, named) for other in made):
            made = [item if _has(other, named) else other for other in made]
        else:
            made.append(item)
    if len(made) < ITEMS_MAX and not cut:
        return made
    return [f"{CUT} more before", *made[1 - ITEMS_MAX :]]


def _is_mark(item: View) -> bool:
    return isinstance(item, str) and item.startswith(CUT)


def _has(item: View, named: Any) -> bool:
    return isinstance(item, dict) and item.get("id") == named
