"""Bounded caches of what does not change: records, blobs, and which blobs a session has."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Cache(Generic[K, V]):
    """The values used last, at most `weight_max` by the sum of their weights. Threads may share it."""

    def __init__(self, weight_max: int, weight: Callable[[V], int] = lambda _: 1) -> None:
        self._weight_max = weight_max
        self._weight_of = weight
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: K) -> V | None:
        """The value of a key, None where there is none."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
            return self._values.get(key)

    def put(self, key: K, value: V) -> None:
        """Set a value. The ones not used for the longest time are evicted; a value beyond the bound is not kept."""
        with self._lock:
            self._put(key, value)

    def setdefault(self, key: K, value: V) -> V:
        """The value of a key, which is set to this one if there is none. Threads that set one at once get the same."""
        with self._lock:
            if key not in self._values:
                self._put(key, value)
                return value
            self._values.move_to_end(key)
            return self._values[key]

    def drop(self, key: K) -> None:
        """Forget a value."""
        with self._lock:
            self._drop(key)

    def drop_where(self, condition: Callable[[K], bool]) -> None:
        """Forget the values of some keys."""
        with self._lock:
            for key in [key for key in self._values if condition(key)]:
                self._drop(key)

    def _put(self, key: K, value: V) -> None:
        self._drop(key)
        self._values[key] = value
        self._weight += self._weight_of(value)
        while self._weight > self._weight_max:
            self._drop(next(iter(self._values)))

    def _drop(self, key: K) -> None:
        if key in self._values:
            self._weight -= self._weight_of(self._values.pop(key))
