"""Tags behind proxies that make them weak, extend them or remove them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from network import Gateway

from agent_blackboard import Client, PreconditionFailed, UnexpectedAnswer

Edit = Callable[[bytes], bytes]
TAG = re.compile(rb"(?im)^etag: (.*?)\r?$")
COPY = re.compile(rb"(?im)^blackboard-etag: .*\r\n")


def weak(head: bytes) -> bytes:
    """What nginx does to the tag of an answer that it compresses."""
    return TAG.sub(rb"etag: W/\1", COPY.sub(b"", head))


def extended(head: bytes) -> bytes:
    """What a proxy might do; the server takes Apache's `-gzip` as it is."""
    return TAG.sub(lambda tag: b"etag: " + tag[1][:-1] + b';gzip"', COPY.sub(b"", head))


def removed(head: bytes) -> bytes:
    return TAG.sub(b"x: y", COPY.sub(b"", head))


def of_answers(edit: Edit) -> Edit:
    """Only of successes: errors are seldom compressed."""
    return lambda head: edit(head) if b" 200 " in head.split(b"\r\n")[0] else COPY.sub(b"", head)


def beside_the_copy(edit: Edit) -> Edit:
    """With `Blackboard-ETag`, which proxies leave alone."""

    def edited(head: bytes) -> bytes:
        tag = TAG.search(head)
        return edit(head) + (b"" if tag is None else b"\r\nBlackboard-ETag: " + tag[1])

    return edited


def count_up(session: Any, **options: Any) -> None:
    """Conditional writes that nobody disturbs."""
    session.state.set("n", 0)
    assert session.state.update("n", lambda n: n + 1, **options) == 1
    assert session.state.update("new", lambda n: n + 1, default=1, **options) == 2
    session.trajectories.append({"n": 0})
    assert session.trajectories.update(1, lambda item: {"n": item["n"] + 1}, **options).item == {"n": 1}
    session.memory("A").append({"n": 0})
    assert session.memory("A").update(1, lambda item: {"n": item["n"] + 1}, **options).item == {"n": 1}


EDITS = {
    "weak": weak,
    "extended beside the copy": beside_the_copy(extended),
    "weak beside the copy": beside_the_copy(weak),
    "removed beside the copy": beside_the_copy(removed),
}


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_conditional_writes_succeed_at_once_behind_proxies(
    make_client: Any, url: str, session_name: str, edit: Edit
) -> None:
    with Gateway(url, edit=edit) as gateway:
        session = make_client(gateway.url, agent="A").session(session_name)
        count_up(session)
        assert [line.split(" ")[0] for line in gateway.seen].count("PUT") == 5
        etag = session.state.read("n").etag
        session.state.set("n", 7, if_match=etag)
        with pytest.raises(PreconditionFailed) as refused:
            session.state.set("n", 8, if_match=etag)
        session.state.set("n", 8, if_match=refused.value.etag)
        with session.transaction() as t:
            t.require("n", etag=session.state.read("n").etag).put("n", 9)
        page = session.trajectories.page()
        same = session.request("GET", "trajectories", headers={"If-None-Match": page.etag})
        assert same.status == 304
        assert session.state.get("n") == 9


def test_the_tag_of_a_412_is_taken_if_reads_have_another(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url, edit=of_answers(extended)) as gateway:
        session = make_client(gateway.url, agent="A").session(session_name)
        count_up(session)
        assert [line.split(" ")[0] for line in gateway.seen].count("PUT") == 8


@pytest.mark.parametrize("edit", [extended, removed, of_answers(removed)], ids=["extended", "removed", "of answers"])
def test_tags_that_no_write_can_use_are_said_at_once(make_client: Any, url: str, session_name: str, edit: Edit) -> None:
    with Gateway(url, edit=edit) as gateway:
        session = make_client(gateway.url).session(session_name)
        session.state.set("n", 0)
        session.trajectories.append({"n": 0})
        seen = len(gateway.seen)
        with pytest.raises(UnexpectedAnswer, match="a proxy between the server and this client"):
            session.state.update("n", lambda n: n + 1)
        with pytest.raises(UnexpectedAnswer, match="a proxy between the server and this client"):
            session.trajectories.update(1, lambda item: item)
        assert len(gateway.seen) <= seen + 6


def test_an_update_goes_on_from_the_entry_of_a_412(make_client: Any, url: str, session_name: str) -> None:
    with Gateway(url) as gateway, Client(url) as direct:
        session = make_client(gateway.url).session(session_name)
        session.trajectories.append({"n": 0, "by": 0})
        others = iter(range(1, 4))

        def change(item: dict[str, Any]) -> dict[str, Any]:
            if (number := next(others, None)) is not None:
                direct.session(session_name).trajectories.patch(1, {"by": number})
            return {**item, "n": item["n"] + 1}

        assert session.trajectories.update(1, change).item == {"n": 1, "by": 3}
        assert [line.split(" ")[0] for line in gateway.seen] == ["POST", "GET", "PUT", "PUT", "PUT", "PUT", "GET"]
