"""Values that calls return: answers, entries, pages, receipts of writes, events."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from . import _headers
from .errors import UnexpectedAnswer


@dataclass(frozen=True)
class Answer:
    """An answer of the server to one request."""

    status: int
    headers: Mapping[str, str]
    content: bytes = field(repr=False)

    def json(self) -> Any:
        """The body's JSON. Raises UnexpectedAnswer where it is none."""
        try:
            value = json.loads(self.content)
            return Members(value) if isinstance(value, dict) else value
        except (ValueError, RecursionError) as error:
            text = f"the answer {self.status} is not JSON: {error}"
            raise UnexpectedAnswer(text, self.status, self.content) from error

    @property
    def etag(self) -> str | None:
        """The tag of the resource shown or made."""
        return _headers.tag(self.headers)

    @property
    def revision(self) -> int | None:
        """The session's revision that the answer shows."""
        return _headers.revision(self.headers)


class Members(dict[str, Any]):
    """The members of an answer; one that this client needs and that is not there makes it UnexpectedAnswer."""

    def __missing__(self, name: str) -> Any:
        raise UnexpectedAnswer(f"the answer has no member {name!r}", 200)


def checked_tag(etag: str | None, refused: str | None = None) -> str:
    """A tag that a write may depend on. Raises UnexpectedAnswer where a proxy removes tags, or changes them."""
    if etag is None:
        raise UnexpectedAnswer("the answer has no ETag; a proxy between the server and this client removes it", 200)
    if etag == refused:
        text = (
            f"the tag {etag} was just read and does not match; a proxy between the server and this client changes ETag"
        )
        raise UnexpectedAnswer(text, 412)
    return etag


@dataclass(frozen=True)
class Entry:
    """An item of a log in its envelope. `raw` is the envelope as the server gave it."""

    seq: int
    revision: int
    at: str
    """The time of the append, RFC 3339 UTC."""
    agent: str | None
    item: dict[str, Any]
    etag: str | None = None
    """The entry's tag for `if_match`, where one entry was read."""
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def claim(self) -> dict[str, Any] | None:
        """The claim of a request: agent, fence, expires_at."""
        return self.raw.get("claim")

    @property
    def done(self) -> dict[str, Any] | None:
        """The completion of a request, with its result."""
        return self.raw.get("done")

    @property
    def failure(self) -> dict[str, Any] | None:
        """The failure of a request whose attempts are spent: reason, agent, at."""
        return self.raw.get("failed")

    @property
    def cancelled(self) -> dict[str, Any] | None:
        """The end of a request that was cancelled: reason, agent, at."""
        return self.raw.get("cancelled")

    @property
    def cancel(self) -> dict[str, Any] | None:
        """The cancellation of a request that is still claimed, which ends with the claim: reason, agent, at."""
        return self.raw.get("cancel")

    @property
    def in_review(self) -> dict[str, Any] | None:
        """The result of a request that waits for a verdict: agent, at, fence, result."""
        return self.raw.get("in_review")

    @property
    def past_attempts(self) -> list[dict[str, Any]]:
        """The last claims of a request that ended without success, oldest first: agent, from, to, outcome, reason."""
        return list(self.raw.get("past_attempts", []))

    @property
    def acked_at(self) -> str | None:
        """The time when a message was acknowledged."""
        return self.raw.get("acked_at")

    @property
    def image(self) -> dict[str, Any] | None:
        """The stored image of a screenshot: url, media_type, bytes, sha256, width, height."""
        return self.raw.get("image")

    @property
    def session(self) -> str | None:
        """The session, in lists over all sessions."""
        return self.raw.get("session")


def entry(raw: dict[str, Any], etag: str | None = None) -> Entry:
    """The entry of an envelope."""
    return Entry(raw["seq"], raw["revision"], raw["at"], raw.get("agent"), raw["item"], raw.get("etag", etag), raw)


@dataclass(frozen=True)
class Page:
    """A page of a log. `next` is the cursor to go on from: `after`, or `before` with `order="desc"`."""

    entries: list[Entry]
    next: int | None
    more: bool
    count: int
    """The length of the log."""
    revision: int
    etag: str | None


@dataclass(frozen=True)
class Written:
    """The receipt of a write. `etag` is what `if_match` on the same address takes next."""

    revision: int
    etag: str | None
    raw: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)
    replayed: bool = False
    """Whether the write had been done before under the same idempotency key."""


@dataclass(frozen=True)
class Appended(Written):
    """The receipt of an append."""

    seqs: list[int] = field(default_factory=list)
    """The numbers of the new entries; none where the session drops screenshots."""
    entry_etags: list[str | None] = field(default_factory=list)

    @property
    def seq(self) -> int:
        """The number of the new entry, the last one of several; 0 where none was made."""
        return self.seqs[-1] if self.seqs else 0

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """Remarks of the server on items that it took."""
        return list(self.raw.get("warnings", []))


def written(answer: Answer) -> Written:
    """The receipt in an answer to a write."""
    raw = answer.json()
    return Written(raw["revision"], raw.get("etag"), raw, _replayed(answer))


def appended(answer: Answer) -> Appended:
    """The receipt in an answer to an append."""
    raw = answer.json()
    made = raw.get("entries", [])
    return Appended(
        raw["revision"],
        raw.get("etag"),
        raw,
        _replayed(answer),
        [part["seq"] for part in made],
        [part.get("etag") for part in made],
    )


def _replayed(answer: Answer) -> bool:
    return answer.headers.get("idempotency-replayed") == "true"


@dataclass(frozen=True)
class Awaiting:
    """Entries of one kind that wait for an agent."""

    count: int = 0
    newest: list[Entry] = field(default_factory=list)
    """The newest of them by ascending seq, at most 20."""


@dataclass(frozen=True)
class Attention:
    """All that waits for an agent. A list that was not wanted is empty."""

    messages: Awaiting = field(default_factory=Awaiting)
    """Messages that it has not acknowledged."""
    claimable: Awaiting = field(default_factory=Awaiting)
    """Requests that it can claim."""
    answers: Awaiting = field(default_factory=Awaiting)
    """Its questions that got an answer."""
    cancels: Awaiting = field(default_factory=Awaiting)
    """Requests that it has claimed and that are cancelled: it stops, and ends its claims."""
    reviews: Awaiting = field(default_factory=Awaiting)
    """Results of other agents that wait for a verdict."""
    paused: bool = False
    """Whether the state asks the agent to pause or to stop all of its work."""
    next: int = 0
    """The cursor to go on from, as `after`."""
    etag: str | None = None
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits."""
        lists = (self.messages, self.claimable, self.answers, self.cancels, self.reviews)
        return not any(found.count for found in lists)


def attention(answer: Answer) -> Attention:
    """What waits for an agent, by an answer."""
    raw = answer.json()

    def awaiting(name: str) -> Awaiting:
        found = raw.get(name)
        return Awaiting() if found is None else Awaiting(found["count"], [entry(part) for part in found["newest"]])

    return Attention(
        awaiting("messages"),
        awaiting("claimable"),
        awaiting("answers"),
        awaiting("cancels"),
        awaiting("reviews"),
        raw["paused"],
        raw["next"],
        answer.etag,
        raw,
    )


@dataclass(frozen=True)
class StateValue:
    """A value of the state with its tag. `revision` is the session's."""

    value: Any
    etag: str | None
    revision: int | None


@dataclass(frozen=True)
class Blob:
    """A blob of a session."""

    sha256: str
    bytes: int
    media_type: str

    @property
    def ref(self) -> dict[str, str]:
        """The reference that keeps the blob when it stands in an item or a state value."""
        return {"$blob": self.sha256}


@dataclass(frozen=True)
class Event:
    """One commit of a session. The kind is `resync` where events before it are not kept any more."""

    revision: int
    kind: str
    at: str | None
    agent: str | None
    changes: list[dict[str, Any]]
    raw: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True)
class Notice:
    """A notice that a session has changed: its revision, and the kinds of its commits."""

    session: str | None
    """None after a gap (`resync`): any session may have changed."""
    revision: int | None
    kinds: list[str]


@dataclass(frozen=True)
class TransactionResult:
    """The outcome of a transaction. With `succeeded` false the operations of `otherwise` were done."""

    succeeded: bool
    revision: int
    results: list[dict[str, Any]]
    etag: str | None
