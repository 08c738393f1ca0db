"""Four wire formats of models: Anthropic Messages, OpenAI Responses, OpenAI Chat Completions, Gemini.

Each reads a request into a `Conversation`, and writes an answer, streamed or not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from conversation import Call, Conversation, Part, Result, Tool

MODEL = "scripted"
ARGUMENTS = "@arguments@"


def dumps(value: Any) -> str:
    """Compact JSON; a number that was read as text stays text."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)


def event(data: Any, name: str | None = None) -> str:
    """One event of a stream."""
    return (f"event: {name}\n" if name else "") + f"data: {dumps(data)}\n\n"


def parts(content: Any) -> list[Part]:
    """What a content is made of, in any of the formats."""
    if content is None:
        return []
    if isinstance(content, str):
        return [Part("text", content)]
    if isinstance(content, dict):
        content = [content]
    found = []
    for block in content:
        if isinstance(block, str):
            found.append(Part("text", block))
            continue
        kind = block.get("type", "")
        if kind in ("image", "input_image", "image_url") or "inlineData" in block:
            found.append(Part("image", dumps(block)))
        elif isinstance(block.get("text"), str):
            found.append(Part("text", block["text"]))
        else:
            found.append(Part(kind or "data", dumps(block)))
    return found


class Anthropic:
    """Messages API."""

    def read(self, body: dict[str, Any]) -> Conversation:
        seen = Conversation(texts=[Part("system", part.text) for part in parts(body.get("system"))])
        seen.formed = "format" in (body.get("output_config") or {}) or "output_format" in body
        for tool in body.get("tools", []):
            seen.tools.append(Tool(tool["name"], tool.get("description", ""), tool.get("input_schema")))
        for message in body["messages"]:
            content = message["content"]
            for block in [{"type": "text", "text": content}] if isinstance(content, str) else content:
                if block["type"] == "tool_use":
                    seen.calls.append(Call(block["name"], dumps(block["input"]), block["id"]))
                elif block["type"] == "tool_result":
                    result = Result(block["tool_use_id"], parts(block.get("content")), block.get("is_error", False))
                    seen.results.append(result)
                elif block["type"] == "text":
                    seen.texts.append(Part(message["role"], block["text"]))
        return seen

    def _blocks(self, answer: Call | str) -> tuple[dict[str, Any], dict[str, Any]]:
        if isinstance(answer, str):
            return {"type": "text", "text": ""}, {"type": "text_delta", "text": answer}
        start = {"type": "tool_use", "id": answer.id, "name": answer.name, "input": {}}
        return start, {"type": "input_json_delta", "partial_json": answer.arguments}

    def write(self, answer: Call | str) -> str:
        block = self._blocks(answer)[0] | ({"text": answer} if isinstance(answer, str) else {"input": ARGUMENTS})
        return filled(dumps(self._message([block], answer)), answer)

    def _message(self, content: list[Any], answer: Call | str | None) -> dict[str, Any]:
        reason = None if answer is None else "end_turn" if isinstance(answer, str) else "tool_use"
        return {
            "id": "msg_1", "type": "message", "role": "assistant", "model": MODEL, "content": content,
            "stop_reason": reason, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 10},
        }  # fmt: skip

    def stream(self, answer: Call | str) -> Iterator[str]:
        start, delta = self._blocks(answer)
        reason = "end_turn" if isinstance(answer, str) else "tool_use"
        for data in (
            {"type": "message_start", "message": self._message([], None)},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": 10}},
            {"type": "message_stop"},
        ):  # fmt: skip
            yield event(data, data["type"])


class Responses:
    """Responses API of OpenAI."""

    def read(self, body: dict[str, Any]) -> Conversation:
        seen = Conversation(texts=[Part("system", part.text) for part in parts(body.get("instructions"))])
        seen.tools = list(self._tools(body.get("tools") or []))
        seen.formed = "format" in (body.get("text") or {}) and body["text"]["format"].get("type") == "json_schema"
        items = body.get("input") or []
        for item in [{"role": "user", "content": items}] if isinstance(items, str) else items:
            kind = item.get("type", "message")
            if kind == "message":
                seen.texts.extend(Part(item["role"], part.text) for part in parts(item["content"]))
            elif kind.endswith("_call"):
                arguments = item.get("arguments", item.get("input", ""))
                arguments = arguments if isinstance(arguments, str) else dumps(arguments)
                name = item.get("name", kind)
                call = Call(name, arguments, item.get("call_id", ""), item.get("namespace"), kind)
                seen.calls.append(call)
            elif kind.endswith("_output"):
                output = item.get("output", item.get("tools"))
                seen.results.append(Result(item.get("call_id") or "", parts(output)))
                seen.tools.extend(self._tools(item.get("tools") or []))
            else:
                seen.texts.append(Part(kind, dumps(item)))
                seen.tools.extend(self._tools(item.get("tools") or []))
        return seen

    def _tools(self, tools: list[Any], namespace: str | None = None) -> Iterator[Tool]:
        for tool in tools:
            if tool.get("type") == "namespace":
                yield Tool(tool["name"], tool.get("description", ""), kind="namespace")
                yield from self._tools(tool["tools"], tool["name"])
            else:
                kind = tool.get("type", "function")
                schema = tool.get("parameters", tool.get("format"))
                yield Tool(tool.get("name", kind), tool.get("description", ""), schema, namespace, kind)

    def _item(self, answer: Call | str) -> dict[str, Any]:
        if isinstance(answer, str):
            content = [{"type": "output_text", "text": answer, "annotations": []}]
            return {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}
        item = {"id": f"item_{answer.id}", "call_id": answer.id, "status": "completed"}
        if answer.kind == "custom":
            return {"type": "custom_tool_call", "name": answer.name, "input": answer.arguments, **item}
        if answer.kind == "tool_search":
            arguments = json.loads(answer.arguments)
            return {"type": "tool_search_call", "execution": "client", "arguments": arguments, **item}
        item |= {"namespace": answer.namespace} if answer.namespace else {}
        return {"type": "function_call", "name": answer.name, "arguments": answer.arguments, **item}

    def _response(self, status: str, output: list[Any]) -> dict[str, Any]:
        usage = {
            "input_tokens": 10, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 10,
            "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 20,
        }  # fmt: skip
        return {
            "id": "resp_1", "object": "response", "created_at": 1, "status": status, "model": MODEL, "output": output,
            "error": None, "incomplete_details": None, "instructions": None, "metadata": {}, "tools": [],
            "parallel_tool_calls": False, "tool_choice": "auto", "temperature": 1, "top_p": 1, "usage": usage,
        }  # fmt: skip

    def write(self, answer: Call | str) -> str:
        return dumps(self._response("completed", [self._item(answer)]))

    def stream(self, answer: Call | str) -> Iterator[str]:
        item = self._item(answer)
        events: list[dict[str, Any]] = [{"type": "response.created", "response": self._response("in_progress", [])}]
        at = {"item_id": item["id"], "output_index": 0}
        if isinstance(answer, str):
            part = item["content"][0]
            within = at | {"content_index": 0}
            empty = {"status": "in_progress", "content": []}
            events += [
                {"type": "response.output_item.added", "output_index": 0, "item": item | empty},
                {"type": "response.content_part.added", "part": part | {"text": ""}, **within},
                {"type": "response.output_text.delta", "delta": answer, "logprobs": [], **within},
                {"type": "response.output_text.done", "text": answer, "logprobs": [], **within},
                {"type": "response.content_part.done", "part": part, **within},
            ]
        else:
            start = {"status": "in_progress"} | ({"arguments": ""} if item["type"] == "function_call" else {})
            events.append({"type": "response.output_item.added", "output_index": 0, "item": item | start})
            if item["type"] == "function_call":
                kind = "response.function_call_arguments"
                events.append({"type": f"{kind}.delta", "delta": answer.arguments, **at})
                events.append({"type": f"{kind}.done", "arguments": answer.arguments, "name": answer.name, **at})
        events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
        events.append({"type": "response.completed", "response": self._response("completed", [item])})
        for number, data in enumerate(events):
            yield event(data | {"sequence_number": number}, data["type"])


class Chat:
    """Chat Completions of OpenAI and all who speak it."""

    def read(self, body: dict[str, Any]) -> Conversation:
        seen = Conversation(formed=(body.get("response_format") or {}).get("type") == "json_schema")
        for tool in body.get("tools") or []:
            function = tool.get("function", tool)
            seen.tools.append(Tool(function["name"], function.get("description", ""), function.get("parameters")))
        for message in body["messages"]:
            if message["role"] == "tool":
                seen.results.append(Result(message.get("tool_call_id", ""), parts(message["content"])))
                continue
            for part in parts(message.get("content")):
                if part.kind == "image" and seen.results and message["role"] == "user":
                    # A result is text in this format, so that pictures come after it.
                    seen.results[-1].parts.append(part)
                else:
                    seen.texts.append(Part(message["role"], part.text))
            for call in message.get("tool_calls") or []:
                function = call["function"]
                seen.calls.append(Call(function["name"], function["arguments"], call["id"]))
        return seen

    def _message(self, answer: Call | str) -> dict[str, Any]:
        if isinstance(answer, str):
            return {"role": "assistant", "content": answer}
        function = {"name": answer.name, "arguments": answer.arguments}
        call = {"index": 0, "id": answer.id, "type": "function", "function": function}
        return {"role": "assistant", "content": None, "tool_calls": [call]}

    def _answer(self, kind: str, choice: dict[str, Any], reason: str | None) -> dict[str, Any]:
        choices = [{"index": 0, "finish_reason": reason, "logprobs": None, **choice}]
        return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": MODEL, "choices": choices}

    def write(self, answer: Call | str) -> str:
        reason = "stop" if isinstance(answer, str) else "tool_calls"
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        whole = self._answer("chat.completion", {"message": self._message(answer)}, reason)
        return dumps(whole | {"usage": usage})

    def stream(self, answer: Call | str) -> Iterator[str]:
        kind = "chat.completion.chunk"
        usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        yield event(self._answer(kind, {"delta": self._message(answer)}, None))
        yield event(self._answer(kind, {"delta": {}}, "stop" if isinstance(answer, str) else "tool_calls"))
        yield event(self._answer(kind, {}, None) | {"choices": [], "usage": usage})
        yield "data: [DONE]\n\n"


class Gemini:
    """`generateContent` and `streamGenerateContent`."""

    def read(self, body: dict[str, Any]) -> Conversation:
        system = body.get("systemInstruction") or body.get("system_instruction") or {}
        seen = Conversation(texts=[Part("system", part.text) for part in parts(system.get("parts"))])
        settings = body.get("generationConfig") or {}
        seen.formed = "responseSchema" in settings or "responseJsonSchema" in settings
        for group in body.get("tools") or []:
            for tool in group.get("functionDeclarations") or group.get("function_declarations") or []:
                schema = tool.get("parametersJsonSchema", tool.get("parameters"))
                seen.tools.append(Tool(tool["name"], tool.get("description", ""), schema))
        contents = body.get("contents") or []
        for content in [contents] if isinstance(contents, dict) else contents:
            for part in content.get("parts", []):
                call, answer = part.get("functionCall"), part.get("functionResponse")
                if call:
                    seen.calls.append(Call(call["name"], dumps(call.get("args", {})), call.get("id", "")))
                elif answer:
                    seen.results.append(self._result(answer))
                elif "inlineData" in part and seen.results and content.get("role") == "user":
                    seen.results[-1].parts.extend(parts([part]))
                else:
                    seen.texts.extend(Part(content.get("role", "user"), found.text) for found in parts([part]))
        return seen

    def _result(self, answer: dict[str, Any]) -> Result:
        response = answer.get("response", {})
        single = next(iter(response.values())) if len(response) == 1 else None
        shown = [Part("text", single)] if isinstance(single, str) else [Part("data", dumps(response))]
        shown += parts(answer.get("parts"))
        return Result(answer.get("id", ""), shown, True if "error" in response else None)

    def write(self, answer: Call | str) -> str:
        part: dict[str, Any] = {"text": answer}
        if isinstance(answer, Call):
            part = {"functionCall": {"id": answer.id, "name": answer.name, "args": ARGUMENTS}}
        usage = {"promptTokenCount": 10, "candidatesTokenCount": 10, "totalTokenCount": 20}
        candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": MODEL, "responseId": "1"}
        return filled(dumps(whole), answer)

    def stream(self, answer: Call | str) -> Iterator[str]:
        yield f"data: {self.write(answer)}\r\n\r\n"


def filled(text: str, answer: Call | str) -> str:
    """Puts the arguments of a call in, as they are written."""
    return text if isinstance(answer, str) else text.replace(dumps(ARGUMENTS), answer.arguments)


def chosen(path: str) -> Any:
    """The format that is spoken at this path, or None."""
    path = path.partition("?")[0]
    for end, kind in (("/messages", Anthropic), ("/responses", Responses), ("/chat/completions", Chat)):
        if path.endswith(end):
            return kind()
    return Gemini() if path.endswith(("enerateContent",)) else None
