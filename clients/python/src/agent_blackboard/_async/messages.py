"""Messages to an agent: sent by others, read and acknowledged by the agent itself."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from typing import Any

from typing_extensions import Unpack

from .._wire import WriteOptions, without_none
from ..values import Appended, Entry, Written, written
from .logs import AsyncLog, Filters


class AsyncMessages(AsyncLog):
    """The messages to an agent, a log of its own. Everyone may send; only the agent reads and acknowledges."""

    async def send(
        self,
        message: str | Mapping[str, Any],
        *,
        thread: str | None = None,
        reply_to: int | None = None,
        **options: Unpack[WriteOptions],
    ) -> Appended:
        """Send a message, in a conversation `thread` and in reply to the message with the seq `reply_to`.

        It waits for the agent until it is acknowledged. Retries send it once.
        """
        item = {"text": message} if isinstance(message, str) else dict(message)
        return await self.append({**item, **without_none({"thread": thread, "reply_to": reply_to})}, **options)

    async def unacked(self, after: int = 0, **filters: Unpack[Filters]) -> AsyncIterator[Entry]:
        """The messages after a seq that the agent has not acknowledged, oldest first."""
        filters["unacked"] = True
        async for found in self.entries(after=after, **filters):
            yield found

    async def ack(self, seq: int, **options: Unpack[WriteOptions]) -> Written:
        """Acknowledge a message, so that it waits no longer. Only the first time counts: `raw["acked_at"]`."""
        # A repetition changes nothing, and without a key it is no commit. One with a condition must be known again.
        keyed = options.get("if_match") is not None
        return written(await self.session.request("PUT", f"{self.path}/{int(seq)}/ack", keyed=keyed, **options))
