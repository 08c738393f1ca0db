"""Bad input of the client: addresses, names, tokens and answers, each a clear exception."""

from __future__ import annotations

import json
import pickle
import socket
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parents[1]))

from network import Scripted, http

from agent_blackboard import (
    BlackboardError,
    Client,
    ConnectionFailed,
    Forbidden,
    IncompatibleServer,
    Overloaded,
    Problem,
    RouteNotFound,
    Unauthorized,
    UnexpectedAnswer,
    UnknownParameter,
    UnsupportedValue,
)

PROBLEM = "application/problem+json"
REVISION = "blackboard-revision: 7"


def problem(status: str, code: str, **more: Any) -> bytes:
    body = {"code": code, "status": int(status[:3]), "detail": "so it is", **more}
    return http(status, PROBLEM, json.dumps(body).encode())


def test_an_address_that_is_none_is_refused_at_once(make_client: Any) -> None:
    for address in ("localhost:8733", "ftp://host", "http://", "http://host/?a=b", "8733", "http://a b/", "http://h:0"):
        with pytest.raises(ValueError, match="the server's address must be like"):
            make_client(address)
    for address in ("http://127.0.0.1:x", "http://127.0.0.1:99999", "http://\0", "http://[::1"):
        with pytest.raises(ValueError, match="address is not a URL"):
            make_client(address)
    with pytest.raises(ValueError, match="user or password") as refused:
        make_client("http://ada:secret@127.0.0.1:8733")
    assert "secret" not in str(refused.value)


def test_an_address_where_nobody_listens_is_a_failed_connection(make_client: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
    with pytest.raises(ConnectionFailed, match=address) as failed:
        make_client(address, timeout=0.5).session("s").trajectories.append({"step": 1})
    assert failed.value.idempotency_key
    assert isinstance(failed.value, ConnectionError)


def test_a_name_that_does_not_resolve_is_a_failed_connection(make_client: Any) -> None:
    with pytest.raises(ConnectionFailed):
        make_client("http://no-such-host.invalid:1", timeout=0.3).session("s").describe()


def test_the_environment_names_server_and_token(
    make_client: Any, url: str, session_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert make_client().url == "http://127.0.0.1:8733"
    monkeypatch.setenv("BLACKBOARD_URL", url + "/")
    assert make_client().url == url
    make_client().session(session_name).trajectories.append({"step": 1})
    monkeypatch.setenv("BLACKBOARD_TOKEN", "wrong\n")
    with pytest.raises(ValueError, match="BLACKBOARD_TOKEN") as refused:
        make_client()
    assert "wrong" not in str(refused.value)
    with pytest.raises(ValueError, match="timeout"):
        make_client(url, "t", timeout=0)


def test_a_token_is_wrong_or_lacks_a_scope(make_client: Any, server: Any) -> None:
    token = server.token("--name", "reader", "--scopes", "read", "--anyway")
    with pytest.raises(Unauthorized):
        make_client(server.url, "bb_wrong").session("s").describe()
    with pytest.raises(Unauthorized):
        make_client(server.url).session("s").trajectories.append({"step": 1})
    with pytest.raises(Forbidden) as refused:
        make_client(server.url, token).session("s").trajectories.append({"step": 1})
    assert refused.value.status == 403
    writer = server.token("--name", "writer", "--scopes", "read,write")
    assert make_client(server.url, writer).session("s").trajectories.append({"step": 1}).seq == 1


def test_html_is_no_answer(make_client: Any) -> None:
    page = b"<html><title>Welcome to nginx!</title></html>"
    for status in ("200 OK", "404 Not Found", "301 Moved Permanently"):
        with Scripted(lambda _, status=status: http(status, "text/html; charset=utf-8", page)) as server:
            session = make_client(server.url).session("s")
            for call in (session.describe, session.trajectories.count):
                with pytest.raises(BlackboardError, match="not a Blackboard server") as failed:
                    call()
                assert isinstance(failed.value, IncompatibleServer)
                assert "text/html" in str(failed.value)


def test_a_gateway_that_fails_is_tried_again(make_client: Any) -> None:
    answers = iter([http("502 Bad Gateway", "text/html", b"<html>"), problem("503 Busy", "overloaded", retryable=True)])
    described = http("200 OK", "application/json", b'{"revision":7}', None, REVISION)
    with Scripted(lambda _: next(answers, described)) as server:
        assert make_client(server.url).session("s").describe() == {"revision": 7}
        assert len(server.seen) == 3
    with Scripted(lambda _: http("502 Bad Gateway", "text/html", b"<html>")) as server:
        with pytest.raises(BlackboardError, match="502"):
            make_client(server.url, timeout=2).session("s").describe()
        assert len(server.seen) > 1
    with Scripted(lambda _: problem("503 Busy", "overloaded", retryable=True)) as server:
        with pytest.raises(Overloaded):
            make_client(server.url, retry=False).session("s").describe()
        assert len(server.seen) == 1


def test_the_pause_that_the_server_asks_for_is_kept(make_client: Any) -> None:
    busy = http("429 Too Many", PROBLEM, b'{"code":"rate-limited","retryable":true}', None, "retry-after: 60")
    with Scripted(lambda _: busy) as server:
        with pytest.raises(Problem) as refused:
            make_client(server.url, timeout=2).session("s").describe()
        assert (refused.value.code, refused.value.retry_after, len(server.seen)) == ("rate-limited", 60.0, 1)


def test_an_answer_that_breaks_off_is_tried_again(make_client: Any) -> None:
    whole = b'{"revision":1,"etag":"\\"1\\"","entries":[{"seq":1}]}'
    answers = iter([http("201 Created", "application/json", whole[:9], len(whole)), b"HTTP/1.1 201 Cre", b""])
    with Scripted(lambda _: next(answers, http("201 Created", "application/json", whole, None, REVISION))) as server:
        assert make_client(server.url).session("s").trajectories.append({"step": 1}).seq == 1
        assert len(server.seen) == 4
    with Scripted(lambda _: http("200 OK", "application/json", whole[:9], len(whole))) as server:
        with pytest.raises(ConnectionFailed):
            make_client(server.url, timeout=0.5).session("s").describe()


def test_json_that_is_none_is_no_answer(make_client: Any) -> None:
    for body in (b"{", b"\xff", b"", b"[" * 100_000):
        with Scripted(lambda _, body=body: http("200 OK", "application/json", body, None, REVISION)) as server:
            with pytest.raises(UnexpectedAnswer, match="not JSON"):
                make_client(server.url).session("s").describe()


def test_an_answer_that_never_ends_is_given_up(make_client: Any) -> None:
    with Scripted(lambda _: b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n1") as server:
        server._answer = lambda _: (_wait(), b"")[1]
        with pytest.raises(ConnectionFailed, match="in time"):
            make_client(server.url, timeout=0.3).session("s").describe()


def _wait() -> None:
    import threading

    threading.Event().wait(1.0)


def test_a_server_of_another_version_is_named(make_client: Any) -> None:
    def answer(first: str) -> bytes:
        if first.startswith("GET / "):
            return http("200 OK", "application/json", b'{"name":"blackboard","version":"0.2.0"}')
        return problem("404 Not Found", "route-not-found")

    with Scripted(answer) as server:
        with pytest.raises(IncompatibleServer, match=r"Blackboard 0\.2\.0; this client needs 0\.1"):
            make_client(server.url).session("s").describe()


def test_a_server_of_this_version_may_know_less(make_client: Any, url: str, session_name: str) -> None:
    session = make_client(url).session(session_name)
    for _ in range(2):
        with pytest.raises(UnknownParameter, match="colour"):
            session.request("GET", "trajectories", params={"colour": "red"})
    with pytest.raises(RouteNotFound):
        session.request("GET", "nothing")
    with Scripted(lambda first: problem("404 No", "route-not-found") if "v1" in first else b"") as server:
        with pytest.raises(RouteNotFound):
            make_client(server.url, timeout=0.5).session("s").request("GET", "nothing")


def test_a_code_that_this_client_does_not_know_is_a_problem(make_client: Any) -> None:
    with Scripted(
        lambda _: problem("418 Teapot", "short-and-stout", errors=[{"pointer": "/a", "detail": "b"}])
    ) as server:
        with pytest.raises(Problem, match=r"short-and-stout: so it is \(/a: b\)") as refused:
            make_client(server.url).session("s").describe()
        assert type(refused.value) is Problem
        again = pickle.loads(pickle.dumps(refused.value))
        assert (again.code, str(again)) == (refused.value.code, str(refused.value))


def test_a_problem_that_is_no_object_is_no_answer(make_client: Any) -> None:
    with Scripted(lambda _: http("400 Bad", PROBLEM, b"[]")) as server:
        with pytest.raises(IncompatibleServer):
            make_client(server.url).session("s").describe()


def test_names_and_parameters_are_checked_before_they_are_sent(client: Any) -> None:
    for name in ("", "\ud800", 7):
        with pytest.raises(UnsupportedValue, match="name"):
            client.session(name)
    with pytest.raises(Problem, match="invalid-name"):
        client.session("..").describe()
    with pytest.raises(UnsupportedValue, match="agent"):
        client.session("s").trajectories.append({}, agent="\ud800")
    with pytest.raises(UnsupportedValue, match="parameter"):
        client.session("s").request("GET", "trajectories", params={"keys": object()})
    with pytest.raises(UnsupportedValue, match="finite"):
        client.session("s").state.set("x", 1, ttl=float("inf"))
    assert client.session("s").request is not None


def test_events_of_something_else_are_no_events(make_client: Any) -> None:
    with Scripted(lambda _: http("200 OK", "application/json", b"{}")) as server:
        with pytest.raises(UnexpectedAnswer, match="instead of events"):
            next(make_client(server.url).session("s").events())
    for data in (b"{", b"[]"):
        with Scripted(lambda _, data=data: http("200 OK", "text/event-stream", b"data: " + data + b"\n\n")) as server:
            with pytest.raises(UnexpectedAnswer, match="an event"):
                next(make_client(server.url).session("s").events())


def test_an_archive_that_breaks_off_leaves_no_file(make_client: Any, tmp_path: Path) -> None:
    part = b'{"blackboard_archive":1}\n{"commit":{}}\n'
    for length in (None, 1000):
        with Scripted(lambda _, length=length: http("200 OK", "application/x-ndjson", part, length)) as server:
            with pytest.raises(ConnectionFailed):
                Client(server.url).session("s").export_archive(tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_a_foreign_server_acknowledges_nothing(make_client: Any) -> None:
    for kind in ("TEXT/HTML", "application/xhtml+xml", "application/json", "text/plain"):
        with Scripted(lambda _, kind=kind: http("200 OK", kind, b"{}")) as server:
            session = make_client(server.url).session("s")
            for call in (session.delete, session.exists, session.state.get, session.prompt, session.clear):
                with pytest.raises(IncompatibleServer):
                    call()
            with pytest.raises(IncompatibleServer):
                session.blobs.exists("0" * 64)


def test_an_answer_of_another_shape_is_unexpected(make_client: Any) -> None:
    with Scripted(lambda _: http("200 OK", "application/json", b'{"data":[]}', None, REVISION)) as server:
        client = make_client(server.url)
        session = client.session("s")
        for call in (session.trajectories.count, session.trajectories.clear, lambda: list(client.sessions())):
            with pytest.raises(UnexpectedAnswer, match="has no member"):
                call()
        with pytest.raises(UnexpectedAnswer, match="do not match blob"):
            session.blobs.get("0" * 64)


def test_a_problem_of_another_shape_is_still_a_problem(make_client: Any) -> None:
    body = json.dumps({"code": ["x"], "errors": [7, {"line": 3, "detail": "b"}]}).encode()
    with Scripted(lambda _: http("400 Bad", PROBLEM, body, None, "retry-after: " + "9" * 5000)) as server:
        with pytest.raises(Problem, match="3: b") as refused:
            make_client(server.url).session("s").describe()
        assert refused.value.retry_after is None


def test_what_fits_no_header_is_refused_before_it_is_sent(make_client: Any, url: str, session_name: str) -> None:
    client = make_client(url, agent="A")
    log = client.session(session_name).trajectories
    for options in (
        {"idempotency_key": "a\nb"},
        {"if_match": "ü"},
        {"if_none_match": 7},
        {"agent": ""},
        {"timeout": -1},
    ):
        with pytest.raises(UnsupportedValue):
            log.append({"step": 1}, **options)
    for items in ({"a": 1}, "abc", b"abc"):
        with pytest.raises(UnsupportedValue, match="use append for one"):
            log.extend(items)
    with pytest.raises(UnsupportedValue, match="KiB"):
        client.session(session_name).questions.ask("q", default="ü" * 4000)
    with pytest.raises(UnsupportedValue, match="state path"):
        client.session(session_name).state.set(7, 1)
    assert not client.session(session_name).exists()
    client.close()
    with pytest.raises(BlackboardError, match="closed"):
        log.count()


def test_an_answer_beyond_the_bound_is_given_up(make_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("_sync", "_async"):
        monkeypatch.setattr(f"agent_blackboard.{part}.transport.CONTENT_MAX", 10)
    with Scripted(lambda _: http("200 OK", "application/json", b"[" * 11, None, REVISION)) as server:
        with pytest.raises(BlackboardError, match="more than"):
            make_client(server.url).session("s").describe()
