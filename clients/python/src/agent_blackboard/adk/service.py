"""Service: the base of the three services, with the boards that one of them has."""

from __future__ import annotations

from typing import ClassVar

from .. import AsyncClient, AsyncSession
from .._adapters.clients import Connected, LoopClients
from .._adapters.names import SEPARATOR, joined


class Service(Connected):
    """Boards of a service, named `PREFIX:APP`, `PREFIX:APP:USER` and `PREFIX:APP:USER:SESSION`.

    The server's address and token are given here, by BLACKBOARD_URL and BLACKBOARD_TOKEN, or by a `client`, which
    belongs to one event loop and stays the caller's to close. Any text is an app's name or an id: what a board's name
    cannot have is escaped in it.
    """

    PREFIX: ClassVar[str]

    def __init__(self, client: AsyncClient | None = None, *, url: str | None = None, token: str | None = None) -> None:
        self._clients = LoopClients(client, url, token)

    def board_name(self, *ids: str) -> str:
        """The name of the board of an app, of its user, or of the user's session."""
        return joined(self.PREFIX, *ids)

    def _board(self, *ids: str) -> AsyncSession:
        return self._clients.current().session(self.board_name(*ids))

    async def _names(self, *ids: str) -> list[str]:
        """The names of the sessions' boards of an app or of its user."""
        prefix = self.board_name(*ids) + SEPARATOR
        names = [found["session"] async for found in self._clients.current().sessions(prefix=prefix)]
        return [name for name in names if name.count(SEPARATOR) == SESSION_SEPARATORS]


SESSION_SEPARATORS = 3
"""Separators in the name of a session's board."""
