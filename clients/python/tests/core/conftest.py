"""Fixtures of the client's own tests: each test runs with both clients, the asynchronous one made blocking."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from agent_blackboard import AsyncClient, Client


class Blocking:
    """An asynchronous object whose calls, iterations and blocks run on a loop in another thread."""

    def __init__(self, target: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._target = target
        self._loop = loop

    def __getattr__(self, name: str) -> Any:
        if name == "close":
            name = "aclose"
        found = getattr(self._target, name)
        return self._called(found) if inspect.isroutine(found) else self._wrapped(found)

    def __repr__(self) -> str:
        return repr(self._target)

    def __enter__(self) -> Any:
        return self._wrapped(self._run(self._target.__aenter__()))

    def __exit__(self, *raised: Any) -> Any:
        return self._run(self._target.__aexit__(*raised))

    def _run(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _called(self, function: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*arguments: Any, **named: Any) -> Any:
            result = function(*arguments, **named)
            return await result if inspect.isawaitable(result) else result

        return lambda *arguments, **named: self._wrapped(self._run(call(*arguments, **named)))

    def _wrapped(self, value: Any) -> Any:
        if hasattr(value, "__anext__"):
            return self._iterated(value)
        ours = type(value).__module__.startswith(("agent_blackboard._async", "contextlib"))
        return Blocking(value, self._loop) if ours else value

    def _iterated(self, iterator: Any) -> Iterator[Any]:
        try:
            while True:
                try:
                    value = self._run(iterator.__anext__())
                except StopAsyncIteration:
                    return
                yield value
        finally:
            self._run(iterator.aclose())


@pytest.fixture(scope="session")
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    yield loop
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


MakeClient = Callable[..., Any]


@pytest.fixture(params=["sync", "async"])
def make_client(request: pytest.FixtureRequest, loop: asyncio.AbstractEventLoop) -> Iterator[MakeClient]:
    """Makes clients of one kind; they are closed at the end."""
    made: list[Any] = []

    def make(*arguments: Any, **named: Any) -> Any:
        if request.param == "sync":
            made.append(Client(*arguments, **named))
        else:
            made.append(Blocking(AsyncClient(*arguments, **named), loop))
        return made[-1]

    yield make
    for client in made:
        client.close()


@pytest.fixture
def client(make_client: MakeClient, url: str) -> Any:
    return make_client(url, agent="HostAgent")


@pytest.fixture
def session(client: Any, session_name: str) -> Any:
    return client.session(session_name)
