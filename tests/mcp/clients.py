"""Common interface of the clients of either generation, so that each case is written once.

Results are passed on as JSON with the protocol's names.
"""

from __future__ import annotations

import base64
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import Any

from fastmcp import Client as FastClient
from fastmcp.client.transports import StreamableHttpTransport

from server import facts_of

IS_RECENT = not version("mcp").startswith("1.")

if IS_RECENT:
    import mcp_types as types
    from mcp import Client as SdkClient
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client
    from mcp.shared.exceptions import MCPError as LibraryError
else:
    import mcp.types as types
    from mcp import ClientSession
    from mcp.client.streamable_http import streamablehttp_client
    from mcp.shared.exceptions import McpError as LibraryError

Progress = Callable[[float, float | None, str | None], Awaitable[None]]
# The answer of a host's user to a question; None declines.
Person = Callable[[str], str | None]


class ProtocolError(Exception):
    """The server answered with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except LibraryError as error:
        raise ProtocolError(error.error.code, error.error.message) from error


def _plain(model: Any) -> Any:
    if isinstance(model, list):
        return [_plain(one) for one in model]
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


class Result:
    """The result of a tool."""

    def __init__(self, result: Any) -> None:
        self.json = _plain(result)
        self.failed = bool(self.json.get("isError"))
        self.structured = self.json.get("structuredContent")
        self._content: list[dict[str, Any]] = self.json["content"]

    def __repr__(self) -> str:
        return f"Result({self.json})"

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self._content if block["type"] == "text")

    @property
    def facts(self) -> dict[str, Any]:
        return facts_of(self.text)

    @property
    def images(self) -> list[tuple[str, bytes]]:
        found = [block for block in self._content if block["type"] == "image"]
        return [(block["mimeType"], base64.b64decode(block["data"], validate=True)) for block in found]


class Client:
    """A connected client of the official SDK."""

    def __init__(self, inner: Any, generation: str, instructions: str) -> None:
        self.inner = inner
        self.generation = generation
        self.instructions = instructions

    async def tools(self) -> list[dict[str, Any]]:
        return list(_plain((await self.inner.list_tools()).tools))

    async def call(self, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> Result:
        with _translated():
            return Result(await self.inner.call_tool(tool, arguments, progress_callback=progress))

    async def resources(self) -> list[dict[str, Any]]:
        listed, cursor = [], None
        while True:
            page = _plain(await self.inner.list_resources(cursor=cursor))
            listed += page["resources"]
            cursor = page.get("nextCursor")
            if cursor is None:
                return listed

    async def templates(self) -> list[dict[str, Any]]:
        return list(_plain(await self.inner.list_resource_templates())["resourceTemplates"])

    async def read(self, uri: str) -> dict[str, Any]:
        with _translated():
            contents = _plain((await self.inner.read_resource(uri)).contents)
        return _one(contents)

    async def prompts(self) -> list[dict[str, Any]]:
        return list(_plain((await self.inner.list_prompts()).prompts))

    async def prompt(self, name: str, arguments: dict[str, str]) -> str:
        with _translated():
            messages = _plain((await self.inner.get_prompt(name, arguments)).messages)
        return str(_one(messages)["content"]["text"])

    async def complete(self, of: str, argument: str, begun: str, **context: str) -> list[str]:
        """The values of an argument of a prompt, or of a resource's template."""
        if "://" in of:
            reference: Any = types.ResourceTemplateReference(type="ref/resource", uri=of)
        else:
            reference = types.PromptReference(type="ref/prompt", name=of)
        session = getattr(self.inner, "session", self.inner)
        found = await session.complete(reference, {"name": argument, "value": begun}, context or None)
        return list(_plain(found)["completion"]["values"])


class Fast(Client):
    """A connected client of fastmcp."""

    async def tools(self) -> list[dict[str, Any]]:
        return list(_plain(await self.inner.list_tools()))

    async def call(self, tool: str, arguments: dict[str, Any], progress: Progress | None = None) -> Result:
        with _translated():
            return Result(await self.inner.call_tool_mcp(tool, arguments, progress_handler=progress))

    async def resources(self) -> list[dict[str, Any]]:
        return list(_plain(await self.inner.list_resources()))

    async def templates(self) -> list[dict[str, Any]]:
        return list(_plain(await self.inner.list_resource_templates()))

    async def read(self, uri: str) -> dict[str, Any]:
        with _translated():
            return _one(_plain(await self.inner.read_resource(uri)))

    async def prompts(self) -> list[dict[str, Any]]:
        return list(_plain(await self.inner.list_prompts()))


def _one(elements: list[dict[str, Any]]) -> dict[str, Any]:
    assert len(elements) == 1, elements
    return elements[0]


def _headers(token: str | None, headers: dict[str, str] | None) -> dict[str, str]:
    return {**(headers or {}), **({} if token is None else {"Authorization": f"Bearer {token}"})}


@asynccontextmanager
async def mcp1(
    url: str, token: str | None = None, headers: dict[str, str] | None = None, person: Person | None = None
) -> AsyncIterator[Client]:
    async with streamablehttp_client(url, headers=_headers(token, headers)) as (read, write, _):
        async with ClientSession(read, write) as session:
            about = await session.initialize()
            yield Client(session, str(about.protocolVersion), about.instructions or "")


@asynccontextmanager
async def fastmcp2(
    url: str, token: str | None = None, headers: dict[str, str] | None = None, person: Person | None = None
) -> AsyncIterator[Client]:
    async with FastClient(StreamableHttpTransport(url, headers=_headers(token, headers))) as client:
        about = client.initialize_result
        yield Fast(client, str(about.protocolVersion), about.instructions or "")


@asynccontextmanager
async def _sdk2(mode: str, url: str, headers: dict[str, str], person: Person | None) -> AsyncIterator[Client]:
    async def elicited(_: Any, params: Any) -> types.ElicitResult:
        said = person(params.message) if person else None
        if said is None:
            return types.ElicitResult(action="decline")
        return types.ElicitResult(action="accept", content={"answer": said})

    async with AsyncExitStack() as stack:
        http = await stack.enter_async_context(create_mcp_http_client(headers=headers))
        transport = streamable_http_client(url, http_client=http)
        callback = elicited if person else None
        client = SdkClient(transport, mode=mode, elicitation_callback=callback, cache=None)
        await stack.enter_async_context(client)
        yield Client(client, client.protocol_version, client.instructions or "")


def mcp2(
    url: str, token: str | None = None, headers: dict[str, str] | None = None, person: Person | None = None
) -> AbstractAsyncContextManager[Client]:
    return _sdk2("auto", url, _headers(token, headers), person)


def mcp2_legacy(
    url: str, token: str | None = None, headers: dict[str, str] | None = None, person: Person | None = None
) -> AbstractAsyncContextManager[Client]:
    """The newer SDK as it speaks with older servers."""
    return _sdk2("legacy", url, _headers(token, headers), person)


@asynccontextmanager
async def fastmcp4(
    url: str, token: str | None = None, headers: dict[str, str] | None = None, person: Person | None = None
) -> AsyncIterator[Client]:
    async def elicited(message: str, *_: Any) -> Any:
        from fastmcp.client.elicitation import ElicitResult

        said = person(message) if person else None
        return ElicitResult(action="decline") if said is None else {"answer": said}

    transport = StreamableHttpTransport(url, headers=_headers(token, headers))
    handler = elicited if person else None
    async with FastClient(transport, elicitation_handler=handler, cache=False) as client:
        yield Fast(client, client.protocol_version or "", client.instructions or "")


Connect = Callable[..., AbstractAsyncContextManager[Client]]
ALL: list[Connect] = [mcp2, mcp2_legacy, fastmcp4] if IS_RECENT else [mcp1, fastmcp2]
