"""Exceptions of the LangGraph adapter, besides those of the client."""

from __future__ import annotations

from ..errors import BlackboardError


class ValueTooLarge(BlackboardError, ValueError):
    """A checkpoint, write or item beyond a bound of the server. Nothing of it was stored."""


class DeltaChainBroken(BlackboardError):
    """A deletion that would cut a checkpoint from writes that its delta channels are made of. Nothing was deleted."""


class IncompatibleLayout(BlackboardError):
    """A session that is laid out by another version of this adapter, or by another program."""


class TooManyConflicts(BlackboardError):
    """A write that lost against other writers too many times in a row. Nothing of it was stored."""
