"""Filters of the store: conditions on values, and patterns of namespaces."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

from langgraph.store.base import MatchCondition

ORDERS: dict[str, Callable[[float, float], bool]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def matches(value: Any, wanted: Any) -> bool:
    """Whether a value meets a filter: an equal value, or an object of operators, or of filters for members.

    `$eq`, `$ne`, and for numbers `$gt`, `$gte`, `$lt`, `$lte`; what is no number is in no order. Raises ValueError for
    another operator.
    """
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compares(value, name, operand) for name, operand in wanted.items())
        return isinstance(value, Mapping) and all(matches(value.get(name), part) for name, part in wanted.items())
    if isinstance(wanted, (list, tuple)):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(matches(part, other) for part, other in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, name: str, operand: Any) -> bool:
    if name == "$eq":
        return bool(value == operand)
    if name == "$ne":
        return bool(value != operand)
    if name not in ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    limit = float(operand)
    try:
        return ORDERS[name](float(value), limit)
    except (TypeError, ValueError, OverflowError):
        return False


def in_namespace(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends as a condition says; `*` stands for any label. Raises ValueError."""
    path = condition.path
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    if len(namespace) < len(path):
        return False
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[len(namespace) - len(path) :]
    return all(label in ("*", name) for name, label in zip(part, path, strict=True))
