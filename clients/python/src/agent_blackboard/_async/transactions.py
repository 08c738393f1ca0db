"""Transactions: several operations in one commit, under conditions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from typing_extensions import Self, Unpack

from .._wire import UNSET, Seconds, Unset, WriteOptions, duration, without_none
from ..errors import ConditionFailed
from ..images import Image
from ..values import TransactionResult
from .screenshots import screenshot

if TYPE_CHECKING:
    from .session import AsyncSession


async def transact(
    session: AsyncSession,
    then: Sequence[Mapping[str, Any]],
    conditions: Sequence[Mapping[str, Any]],
    otherwise: Sequence[Mapping[str, Any]],
    **options: Unpack[WriteOptions],
) -> TransactionResult:
    """Commit `then` if all conditions hold, else `otherwise`."""
    body: dict[str, Any] = {"then": list(then)}
    if conditions:
        body["if"] = list(conditions)
    if otherwise:
        body["else"] = list(otherwise)
    raw = (await session.request("POST", "transactions", json=body, **options)).json()
    return TransactionResult(raw["succeeded"], raw["revision"], raw["results"], raw.get("etag"))


class AsyncTransaction:
    """A transaction of a `with` block. Its end commits all operations at once; an exception inside commits none.

    The block's end raises ConditionFailed where a condition does not hold. After it, `result` has the outcome.
    """

    def __init__(
        self, session: AsyncSession, options: WriteOptions, committed: Callable[[], None] = lambda: None
    ) -> None:
        self._session = session
        self._committed = committed
        self._options = options
        self._conditions: list[dict[str, Any]] = []
        self._operations: list[dict[str, Any]] = []
        self.result: TransactionResult | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and (self._operations or self._conditions):
            await self._commit()

    async def _commit(self) -> None:
        self.result = await transact(self._session, self._operations, self._conditions, (), **self._options)
        if not self.result.succeeded:
            text = f"a condition of the transaction on session {self._session.name!r} did not hold; nothing was written"
            raise ConditionFailed(text, self.result.revision)
        self._committed()

    def require(self, path: str, *, equals: Any = UNSET, absent: bool = False, etag: str | None = None) -> Self:
        """Require that a state path equals a value, is absent, or has a tag."""
        chosen = [not isinstance(equals, Unset), absent, etag is not None]
        if sum(chosen) != 1:
            raise ValueError("a condition takes one of equals, absent=True and etag")
        condition = {"equals": equals} if chosen[0] else {"absent": True} if absent else {"etag": etag}
        self._conditions.append({"path": path, **condition})
        return self

    def require_count(self, log: str, count: int) -> Self:
        """Require that a log has so many entries."""
        self._conditions.append({"log": log, "count": count})
        return self

    def require_claimable(self, seq: int, claimable: bool = True) -> Self:
        """Require that a request is claimable, or is not."""
        self._conditions.append({"request": seq, "claimable": claimable})
        return self

    def require_revision(self, revision: int) -> Self:
        """Require that the session has this revision."""
        self._conditions.append({"revision": revision})
        return self

    def append(self, log: str, item: Mapping[str, Any] | str, **terms: Any) -> Self:
        """Append an item to a log: `questions`, …, `agents/NAME/memory`, or `agents/NAME/messages`.

        `terms` are those of a request or question as the contract has them: `priority=5`, `not_before="10m"`, ….
        """
        made = dict(item) if isinstance(item, Mapping) else {"text": item}
        return self._then({"append": log, "item": made, **without_none(terms)})

    def append_screenshot(self, image: Image, *, metadata: Any = None, image_path: str | None = None) -> Self:
        """Append an image from a path, bytes or a PIL image. A step names it by the same `image_path`."""
        return self._then({"append": "screenshots", "item": screenshot(image, metadata, image_path)})

    def put(self, path: str, value: Any, *, ttl: Seconds | None = None) -> Self:
        """Set a state path."""
        return self._then({"put": path, "value": value, **_ttl(ttl)})

    def merge(self, path: str, patch: Any) -> Self:
        """Merge into a state path (RFC 7396)."""
        return self._then({"patch": path, "value": patch})

    def add(self, path: str, number: float = 1) -> Self:
        """Add to a number of the state."""
        return self._then({"add": path, "value": number})

    def delete(self, path: str) -> Self:
        """Delete a state path."""
        return self._then({"delete": path})

    def claim(self, seq: int, ttl: Seconds = 60.0) -> Self:
        """Claim a request."""
        return self._then({"claim": seq, **_ttl(ttl)})

    def claim_next(self, match: Mapping[str, Any] | None = None, ttl: Seconds = 60.0) -> Self:
        """Claim the next claimable request that matches: of the highest priority, then the oldest."""
        return self._then({"claim_next": dict(match or {}), **_ttl(ttl)})

    def done(self, seq: int, fence: int | None = None, result: Any = UNSET) -> Self:
        """Finish a request."""
        fenced = {} if fence is None else {"fence": fence}
        return self._then({"done": seq, **fenced, **({} if isinstance(result, Unset) else {"result": result})})

    def cancel(self, seq: int, reason: Any = None) -> Self:
        """Cancel a request."""
        return self._then(without_none({"cancel": seq, "reason": reason}))

    def verdict(self, seq: int, accept: bool, fence: int | None = None, reason: Any = None) -> Self:
        """Accept or refuse a result that is in review."""
        return self._then(without_none({"verdict": seq, "accept": accept, "fence": fence, "reason": reason}))

    def answer(self, seq: int, text: str) -> Self:
        """Answer a question."""
        return self._then({"answer": seq, "value": text})

    def ack(self, seq: int, agent: str | None = None) -> Self:
        """Acknowledge a message to an agent, by default to the author."""
        return self._then(without_none({"ack": seq, "agent": agent}))

    def status(self, agent: str, status: str) -> Self:
        """Set an agent's status."""
        return self._then({"status": agent, "value": status})

    def _then(self, operation: dict[str, Any]) -> Self:
        self._operations.append(operation)
        return self


def _ttl(ttl: Seconds | None) -> dict[str, str]:
    return {} if ttl is None else {"ttl": duration(ttl)}
