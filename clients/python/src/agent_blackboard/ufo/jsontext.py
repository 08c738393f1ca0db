"""JSON text of Python values: strict for a board, approximate for a mirror.

A board takes what JSON can hold and nothing else. A mirror is for people, so it takes anything.
"""

from __future__ import annotations

import json
import math
from typing import Any

from ..errors import UnsupportedValue

LEVELS_MAX = 128
INTEGER_DIGITS_MAX = 4300


def exact(value: Any) -> str:
    """The JSON text of a value.

    Raises UnsupportedValue for an object of another type, NaN, Infinity, an unpaired surrogate, an integer of more
    than 4,300 digits, a value inside itself, and more than 128 levels.
    """
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise UnsupportedValue(f"the value is not JSON: {error}; convert it first") from error
    if text.count("[") + text.count("{") > LEVELS_MAX and _levels(value) > LEVELS_MAX:
        raise UnsupportedValue(f"the value has more than {LEVELS_MAX} levels; flatten it first")
    return text


def approximate(value: Any) -> tuple[str, bool]:
    """The JSON text of a value, with `repr` in place of each part that JSON cannot hold, and whether there was one."""
    try:
        return exact(value), False
    except UnsupportedValue:
        return exact(_mirrored(value, ())), True


def _levels(value: Any) -> int:
    levels, row = 0, [value]
    while row := [part for part in row if isinstance(part, (dict, list, tuple))]:
        levels += 1
        row = [inner for part in row for inner in (part.values() if isinstance(part, dict) else part)]
    return levels


def _mirrored(value: Any, above: tuple[int, ...]) -> Any:
    if len(above) < LEVELS_MAX and id(value) not in above:
        above = (*above, id(value))
        if isinstance(value, dict):
            return {_text(key): _mirrored(inner, above) for key, inner in value.items()}
        if isinstance(value, (list, tuple)):
            return [_mirrored(inner, above) for inner in value]
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, int):
        return value if value.bit_length() < 3 * INTEGER_DIGITS_MAX else hex(value)
    return value if value is None else _text(_represented(value))


def _represented(value: Any) -> str:
    try:
        return repr(value)
    except Exception:  # noqa: BLE001 - any class may fail in any way
        return f"<{type(value).__name__}>"


def _text(value: Any) -> str:
    return str(value).encode(errors="backslashreplace").decode()
