"""Leases: a state path with a time limit that one holder has, kept by renewal."""

from __future__ import annotations

import logging
import time
import uuid
from typing import TYPE_CHECKING

from typing_extensions import Self

from .._backend import AsyncTicker
from .._wire import Seconds, duration, seconds
from .._wire import path as joined
from ..errors import BlackboardError, ConditionNotMet, LeaseHeld, LeaseLost, NotFound, PreconditionFailed
from ..values import Written

if TYPE_CHECKING:
    from .session import AsyncSession

PLACE = "leases"
TTL_MIN = 1.0
logger = logging.getLogger("agent_blackboard")


class AsyncLease:
    """The lease `leases/NAME` of a session's state.

    `fence` is the revision at which it was acquired: it grows from holder to holder, so that whoever checks it refuses
    a former holder. The lease is renewed at every third of `ttl`; `lost` tells that it was not in time.
    """

    def __init__(self, session: AsyncSession, name: str, ttl: Seconds, wait: Seconds | None) -> None:
        self._session = session
        self.name = name
        self.path = joined(PLACE, name)
        self.ttl = seconds(ttl)
        if self.ttl < TTL_MIN:
            raise ValueError(f"a lease must last at least {TTL_MIN:g} s")
        self._wait = 0.0 if wait is None else seconds(wait)
        self._value = {"holder": session.client.agent, "id": str(uuid.uuid4())}
        self._etag: str | None = None
        self._ticker: AsyncTicker | None = None
        self._renewed_at = 0.0
        self._lost = False
        self.fence = 0

    @property
    def lost(self) -> bool:
        """Whether another may hold the lease: it was deleted, or not renewed within `ttl`."""
        return self._lost or time.monotonic() - self._renewed_at >= self.ttl

    def check(self) -> None:
        """Raise LeaseLost where the lease is lost."""
        if self.lost:
            raise LeaseLost(f"the lease {self.name!r} of session {self._session.name!r} is lost")

    async def __aenter__(self) -> Self:
        receipt = await self._acquire()
        self.fence = receipt.revision
        self._ticker = AsyncTicker(self.ttl / 3, self._renew)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._ticker is not None:
            await self._ticker.stop()
        try:
            await self._session.state.delete(self.path, if_match=self._etag, missing_ok=True)
        except PreconditionFailed:
            self._lost = True
        except BlackboardError as error:
            logger.warning("the lease %r was not released and will expire: %s", self.name, error)

    async def _acquire(self) -> Written:
        deadline = time.monotonic() + self._wait
        while True:
            begun = time.monotonic()
            try:
                receipt = await self._session.state.set(self.path, self._value, ttl=self.ttl, if_none_match="*")
            except PreconditionFailed as held:
                left = deadline - time.monotonic()
                holder = held.current.get("holder") if isinstance(held.current, dict) else None
                if left <= 0:
                    raise LeaseHeld(f"the lease {self.name!r} is held by {holder}", holder) from held
                try:
                    await self._session.state.wait(self.path, "absent", wait=left)
                except ConditionNotMet:
                    continue
            else:
                self._renewed_at, self._etag = begun, receipt.etag
                return receipt

    async def _renew(self) -> bool:
        begun = time.monotonic()
        try:
            receipt = await self._session.state.set(
                self.path, self._value, ttl=duration(self.ttl), if_match=self._etag, timeout=self.ttl / 3
            )
        except (PreconditionFailed, NotFound):
            self._lost = True
            return False
        except BlackboardError as error:
            logger.warning("the lease %r was not renewed: %s", self.name, error)
        else:
            # A renewal leaves the value as it is, so the tag stays.
            self._renewed_at, self._etag = begun, receipt.etag
        return True
