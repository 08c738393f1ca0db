"""Persistence of CrewAI's flows on a board: their states, what each method changed, feedback that they wait for.

A flow is a session. Its present state is one value of the session's state; each save also appends an item to
`trajectories`. A flow that waits for a person's feedback has a question on the board.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from typing import Any, Final

from crewai.flow.async_feedback.types import PendingFeedbackContext
from crewai.flow.persistence import FlowPersistence
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, SecretStr
from typing_extensions import Self

from . import (
    AlreadyAnswered,
    Client,
    ConditionFailed,
    PathNotFound,
    PreconditionFailed,
    Session,
    SessionNotFound,
    UnsupportedValue,
)
from ._adapters.names import joined
from ._adapters.strings import TEXT, filled, packed, references
from .values import StateValue

__all__ = ["BlackboardFlowPersistence"]

TRIES_MAX: Final = 100
"""Saves of one call, each rejected because another writer was faster."""
FLOW: Final = "flow"
"""The state path of a flow's present state."""
PENDING: Final = "pending_feedback"
"""The state path of what a paused flow goes on from."""
ASKER: Final = "crewai"
"""The member `asked_by` of the questions that are asked here."""


class BlackboardFlowPersistence(FlowPersistence):
    """States of CrewAI's flows, each flow in a session of its own, which `board` names.

    `save_state` is one commit: the state at `flow`, and an item of `trajectories` with the members that changed. Of two
    writers at once, one follows the other. A paused flow is at `pending_feedback`, and its question in `questions`.

    The server's address and token are given here, by BLACKBOARD_URL and BLACKBOARD_TOKEN, or by a `client`, which stays
    the caller's to close. `settings` are those of a session that is made here, such as `{"ttl": "30d"}`.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    persistence_type: str = Field(default="BlackboardFlowPersistence")
    url: str | None = None
    prefix: str = "crewai"
    settings: dict[str, Any] = Field(default_factory=dict)
    # A flow that is saved as JSON has its persistence in it: no secret may be there.
    token: SecretStr | None = Field(default=None, exclude=True, repr=False)
    client: Client | None = Field(default=None, exclude=True, repr=False)
    _client: Client = PrivateAttr()

    def model_post_init(self, context: Any, /) -> None:
        """Prepare the connections; none is opened yet."""
        if self.client is not None and (self.url is not None or self.token is not None):
            raise ValueError("a client has its address and token already: give either it or these")
        token = None if self.token is None else self.token.get_secret_value()
        self._client = self.client or Client(self.url, token)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections; a client that was given stays open."""
        if self.client is None:
            self._client.close()

    def board(self, flow_uuid: str) -> str:
        """The name of a flow's session on the server."""
        return joined(self.prefix, str(flow_uuid))

    def init_db(self) -> None:
        """Set up nothing: a session is made by its first write."""

    def save_state(self, flow_uuid: str, method_name: str, state_data: dict[str, Any] | BaseModel) -> None:
        """Store the state after a method, in one commit with the item that says what it changed.

        Raises UnsupportedValue if the state is no JSON (NaN, unpaired surrogates), and ItemTooLarge if more than 1 MiB
        of it changed, long strings aside. After these and the client's other exceptions the former state stays.
        """
        self._save(flow_uuid, method_name, _members(state_data), {}, [])

    def load_state(self, flow_uuid: str) -> dict[str, Any] | None:
        """The state that was stored last, or None. Raises ValueError if the value on the board is no state."""
        session = self._session(flow_uuid)
        return self._restored(session, session.state.get(f"{FLOW}/state"))

    def save_pending_feedback(
        self, flow_uuid: str, context: PendingFeedbackContext, state_data: dict[str, Any] | BaseModel
    ) -> None:
        """Store the state with what the flow needs to go on, and ask its question on the board, in one commit."""
        state = _members(state_data)
        asked = _plain(context.to_dict())
        question = {
            "question": context.message or context.method_name,
            **({"options": asked["emit"]} if asked["emit"] else {}),
            "asked_by": ASKER,
            "method": context.method_name,
            "output": asked["method_output"],
        }
        blobs: dict[str, bytes] = {}
        operations = [
            {"put": PENDING, "value": packed({"context": asked, "state": state}, blobs)},
            {"append": "questions", "item": packed(question, blobs)},
        ]
        former = self._open_questions(flow_uuid)
        self._save(flow_uuid, context.method_name, state, blobs, operations)
        self._skip(flow_uuid, former)

    def load_pending_feedback(self, flow_uuid: str) -> tuple[dict[str, Any], PendingFeedbackContext] | None:
        """The state of a paused flow and its context, or None. Raises ValueError if the value is neither."""
        session = self._session(flow_uuid)
        stored = self._restored(session, session.state.get(PENDING))
        if stored is None:
            return None
        try:
            return stored["state"], PendingFeedbackContext.from_dict(stored["context"])
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            raise ValueError(f"the paused flow {flow_uuid!r} cannot be restored: {error!r}") from error

    def clear_pending_feedback(self, flow_uuid: str) -> None:
        """Delete what a paused flow goes on from; its question is skipped, unless it was answered on the board."""
        self._session(flow_uuid).state.delete(PENDING, missing_ok=True)
        self._skip(flow_uuid, self._open_questions(flow_uuid))

    def _session(self, flow_uuid: str) -> Session:
        return self._client.session(self.board(flow_uuid))

    def _save(
        self,
        flow_uuid: str,
        method: str,
        state: dict[str, Any],
        blobs: dict[str, bytes],
        operations: list[dict[str, Any]],
    ) -> None:
        session = self._session(flow_uuid)
        value = {"id": str(flow_uuid), "method": method, "state": packed(state, blobs)}
        for _ in range(TRIES_MAX):
            found = _found(session)
            if found is None:
                self._make(session)
            known = set() if found is None else set(references(found.value))
            for digest in blobs.keys() - known:
                session.blobs.put(blobs[digest], TEXT)
            former = _state_of(found)
            step = {"method": method, **_change(former, value["state"])}
            condition = {"path": FLOW, "absent": True} if found is None else {"path": FLOW, "etag": found.etag}
            then = [{"put": FLOW, "value": value}, {"append": "trajectories", "item": step}, *operations]
            result = session.transact(then, [condition])
            if result.succeeded:
                return
        text = f"the state of flow {flow_uuid!r} was changed by others {TRIES_MAX} times while it was saved"
        raise ConditionFailed(text, result.revision)

    def _make(self, session: Session) -> None:
        """Make the session with its settings; one that exists keeps its own."""
        if self.settings:
            try:
                session.configure(self.settings, if_none_match="*")
            except PreconditionFailed:
                return

    def _open_questions(self, flow_uuid: str) -> list[int]:
        questions = self._session(flow_uuid).questions
        try:
            return [entry.seq for entry in questions.entries(pending=True) if entry.item.get("asked_by") == ASKER]
        except SessionNotFound:
            return []

    def _skip(self, flow_uuid: str, seqs: list[int]) -> None:
        questions = self._session(flow_uuid).questions
        for seq in seqs:
            try:
                questions.skip(seq)
            except AlreadyAnswered:
                continue

    def _restored(self, session: Session, stored: Any) -> dict[str, Any] | None:
        if stored is None:
            return None
        if not isinstance(stored, dict):
            raise ValueError(f"session {session.name!r} has no state of a flow, but a {type(stored).__name__}")
        strings = {digest: session.blobs.get(digest).decode() for digest in set(references(stored))}
        restored: dict[str, Any] = filled(stored, strings)
        return restored


def _found(session: Session) -> StateValue | None:
    try:
        return session.state.read(FLOW)
    except (PathNotFound, SessionNotFound):
        return None


def _state_of(found: StateValue | None) -> Mapping[str, Any]:
    """The state in a value on the board; empty if it is somebody else's."""
    state = found.value.get("state") if found is not None and isinstance(found.value, dict) else None
    return state if isinstance(state, dict) else {}


def _change(former: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, Any]:
    """What an item of `trajectories` shows of a save: members that are new or other, and names of those that went."""
    changed = {
        name: value
        for name, value in state.items()
        if name not in former or json.dumps(former[name]) != json.dumps(value)
    }
    removed = [name for name in former if name not in state]
    return {"changed": changed, **({"removed": removed} if removed else {})}


def _members(state: dict[str, Any] | BaseModel) -> dict[str, Any]:
    """The members of a state as JSON has them, by the rules of SQLiteFlowPersistence."""
    plain = _plain(state)
    if not isinstance(plain, dict):
        raise ValueError(f"the state of a flow is an object, not a {type(state).__name__}")
    return plain


def _plain(value: Any) -> Any:
    try:
        return json.loads(json.dumps(value, default=_default))
    except RecursionError as error:
        raise UnsupportedValue("the state of a flow has too many levels") from error


def _default(value: Any) -> Any:
    if isinstance(value, BaseModel):
        try:
            return value.model_dump(mode="json")
        except ValueError:
            return value.model_dump()  # A field is of a type that Pydantic has no JSON for.
    if isinstance(value, (set, tuple, frozenset)):
        return list(value)
    if isinstance(value, date):
        return value.isoformat()
    return str(value)
