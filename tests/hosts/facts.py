"""Facts of a run, compact enough to compare, and the transcript of what the model saw."""

from __future__ import annotations

import json
import re
from typing import Any

from conversation import Conversation, Part
from job import ENTRIES, NUMBERS, Done, Player, written
from stage import Stage
from wire import Exchange, masked

SHOWN_MAX = 3000
BASE64 = re.compile(r"iVBORw0KGgo[A-Za-z0-9+/=]{40,}")
PATH = re.compile(r"(?:/[\w.~+@-]+){2,}")


def holds(seen: str, sent: str) -> bool:
    """Whether a text is within another, as it is or as a JSON string, once or twice."""
    once = json.dumps(sent, ensure_ascii=False)[1:-1]
    return any(form in seen for form in (sent, once, json.dumps(once, ensure_ascii=False)[1:-1]))


def everything(seen: Conversation) -> str:
    """All text that a request shows, tools included."""
    shown = [part.text for part in seen.texts]
    tools = [tool for tool in seen.tools if not tool.deferred]
    shown += [f"{tool.name} {tool.description} {json.dumps(tool.schema, default=str)}" for tool in tools]
    return "\n".join(shown)


def instructions(seen: Conversation, sent: str) -> str:
    """How much of the server's instructions is in a request: whole, the first line, or none."""
    text = everything(seen)
    lines = [line for line in sent.splitlines() if line.strip()]
    if not lines:
        return "the server's are unknown"
    found = [line for line in lines if holds(text, line)]
    if not found:
        return "none"
    if len(found) == len(lines):
        return "whole"
    return "first line" if found == lines[:1] else f"{len(found)} of {len(lines)} lines"


def tools(seen: Conversation, sent: list[dict[str, Any]]) -> dict[str, Any]:
    """How many of the board's tools are shown with description and schema, and how many only by name."""
    text = everything(seen)
    listed = [tool for tool in sent if seen.tool(tool["name"])]
    described = [tool for tool in sent if holds(text, tool["description"])]
    named = [tool for tool in sent if re.search(rf"{tool['name']}\b", text)]
    first = seen.tool(sent[0]["name"]) if sent else None
    called = first and f"{first.namespace or ''} {first.name}".strip()
    return {"listed": len(listed), "described": len(described), "named": len(named), "called": called}


def portion(done: Done, sent: dict[str, Any]) -> str:
    """Which part of a result the model saw: its text, its structured content, or both."""
    seen = plain(done.result.text())
    text = "".join(block.get("text", "") for block in sent.get("content", []))
    found = ["text"] if plain(text) in seen else []
    if "structuredContent" in sent and plain(json.dumps(sent["structuredContent"], ensure_ascii=False)) in seen:
        found.append("structured")
    among = " of text and structured" if "structuredContent" in sent else " of text"
    return (" and ".join(found) or "neither") + among


def plain(text: str) -> str:
    """A text without spaces and escapes, which hosts change."""
    return re.sub(r"\\n|[\s\\]", "", text)


def ranges(numbers: list[int]) -> str:
    """Numbers in order as ranges: 1-4, 9-12."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}-{last}" for first, last in found)


def reading(done: Done, sent: dict[str, Any]) -> dict[str, Any]:
    """How much of a long result the model saw, in thousands of characters, and which entries of the log."""
    seen = done.result.text()
    text = "".join(block.get("text", "") for block in sent.get("content", []))
    entries = sorted({int(number) for number in re.findall(r"\[(\d{4})\] lorem", seen)})
    given = sorted({int(number) for number in re.findall(r"\[(\d{4})\] lorem", text)})
    facts: dict[str, Any] = {
        "sent_characters": round(len(text), -3),
        "seen_characters": round(len(seen), -3),
        "whole": entries == given,
        "entries": f"{len(entries)} of {len(given)}" if len(given) == ENTRIES else f"{len(entries)}",
    }
    if entries != given:
        facts["entries_seen"] = ranges(entries)
        facts["file"] = bool(PATH.search(seen))
    return facts


def image(done: Done) -> str:
    """What became of a picture."""
    if any(part.kind == "image" for part in done.result.parts):
        return "image"
    text = done.result.text()
    return "base64 text" if BASE64.search(text) else "no image"


def numbers(text: str) -> str:
    """The two numbers of the job as they stand in a text."""
    pairs = [re.search(rf'{name}\\*"\s*:\s*([^,}}\s\\]+)', text) for name in ("count", "price")]
    found = ", ".join(pair[1] if pair else "-" for pair in pairs)
    return "unchanged" if found == "12345678901234567890, 1.10" else found


def introduced(player: Player) -> Conversation:
    """The first request that names the board's tools: some hosts connect to servers while the model thinks."""
    naming = (seen for seen in player.requests if "board_overview" in everything(seen))
    first = player.requests[0] if player.requests else Conversation()
    return next(naming, first)


def facts(player: Player, stage: Stage, code: int | None) -> dict[str, Any]:
    """All facts of one run."""
    exchanges = stage.wire.exchanges()
    seen = introduced(player)
    begins = [one for one in exchanges if one.method() in ("initialize", "server/discover")]
    hello = next((one.answer["result"] for one in begins if "instructions" in one.answer.get("result", {})), {})
    listing = [one.answer["result"]["tools"] for one in exchanges if "tools" in one.answer.get("result", {})]
    last = {done.step.name: done for done in player.done}
    shown: dict[str, Any] = {
        "host": player.host.name,
        "packages": list(player.host.packages()),
        "protocol": protocol(exchanges),
        "instructions": instructions(seen, hello.get("instructions", "")),
        "tools": tools(seen, listing[-1] if listing else []),
        "searches_for_a_tool": len(player.searches),
        "steps": {step.name: outcome(player, step.name, step.expect) for step in player.steps},
    }
    sent = {name: answer_of(exchanges, done) for name, done in last.items()}
    for name in ("append", "short_reading", "claim"):
        if name in last:
            shown.setdefault("sees", {})[name] = portion(last[name], sent[name])
    if "claim" in last:
        shown["numbers_in_claim"] = numbers(last["claim"].result.text())
    if "read_numbers" in last:
        shown["numbers_read"] = numbers(last["read_numbers"].result.text())
    if "write_numbers" in last:
        shown["numbers_written"] = numbers(written(stage))
    for name in ("default_reading", "long_reading"):
        if name in last:
            shown[name] = reading(last[name], sent[name])
    if "get_screenshot" in last:
        shown["image"] = image(last["get_screenshot"])
    if "wrong_fence" in last:
        result = last["wrong_fence"].result
        shown["rejection"] = {"marked": result.error, "begins": masked(result.text())[:160]}
    for name in ("person", "person_here", "interrupted"):
        if name in last:
            text = masked(last[name].result.text())[:160]
            shown[name] = {"about_seconds": 5 * round(last[name].seconds / 5), "begins": text}
    restarts = [done for done in player.done if done.step.name == "after_restart"]
    shown["restart_costs_calls"] = max(0, len(restarts) - 1)
    shown["ends"] = {"code": code, "all_steps": player.at == len(player.steps)}
    return shown


def protocol(exchanges: list[Exchange]) -> dict[str, Any]:
    """How the host speaks: its first message, the version in use, its capabilities."""
    if not exchanges:
        return {}
    calls = [one for one in exchanges if one.method() == "tools/call"]
    meta = calls[0].message["params"].get("_meta", {}) if calls else {}
    first = exchanges[0].message
    given = first.get("params", {}).get("capabilities")
    given = given or meta.get("io.modelcontextprotocol/clientCapabilities") or {}
    return {
        "begins_with": exchanges[0].method(),
        "version": calls[0].headers.get("mcp-protocol-version") if calls else None,
        "capabilities": sorted(given),
        "progress_token": "progressToken" in meta,
        "methods": sorted({one.method() for one in exchanges if one.method()}),
    }


def answer_of(exchanges: list[Exchange], done: Done) -> dict[str, Any]:
    """The server's result of the last call of a step, found by its arguments."""
    calls = [one.message["params"] | {"answer": one.answer} for one in exchanges if one.method() == "tools/call"]
    asked = json.loads(done.arguments)
    mine = [one for one in calls if one["name"] == done.step.tool and one.get("arguments", {}) == asked]
    return mine[-1]["answer"].get("result", {}) if mine else {}


def outcome(player: Player, name: str, expect: str) -> str:
    """How a step ended: "ok", not possible, or the beginning of what the model saw instead."""
    if name in player.missing:
        return "no such tool"
    tries = [done for done in player.done if done.step.name == name]
    if not tries:
        return "not reached"
    text = tries[-1].result.text()
    good = re.search(expect, text) is not None
    return "ok" if good else masked(text)[:200]


def cut(text: str, most: int = SHOWN_MAX) -> str:
    """A text for reading, its middle left out where it is long."""
    if len(text) <= most:
        return text
    return f"{text[: most // 2]}\n[... {len(text) - most} characters left out here ...]\n{text[-most // 2 :]}"


def fenced(text: str) -> str:
    return f"~~~~\n{text}\n~~~~\n"


def about(parts: list[Part]) -> list[str]:
    """The paragraphs of a request that speak of the board."""
    found = []
    for part in parts:
        for paragraph in re.split(r"\n\s*\n", part.text):
            if re.search(r"blackboard|board_overview", paragraph, re.IGNORECASE):
                found.append(f"{part.kind}:\n\n{fenced(cut(paragraph))}")
    return found


def transcript(player: Player, shown: dict[str, Any]) -> str:
    """What the model saw, as Markdown."""
    seen = introduced(player)
    lines = [f"# {player.host.name}: {', '.join(player.host.packages())}\n", fenced(json.dumps(shown, indent=1))]
    lines += ["## Before the first call: what speaks of the board\n", *about(seen.texts)]
    names = ", ".join(f"{tool.namespace or ''}/{tool.name}".strip("/") for tool in seen.tools)
    lines += [f"## Tools in the request\n\n{names}\n"]
    first = seen.tool("board_overview") or next(iter(seen.tools), None)
    if first:
        lines.append(fenced(cut(f"{first.name}\n{first.description}\n{json.dumps(first.schema, default=str)}")))
    lines.append("## Calls\n")
    for done in sorted(player.searches + player.done, key=lambda one: int(one.call.id.rpartition("_")[2])):
        marked = {True: ", marked as an error", False: ", not marked as an error", None: ""}[done.result.error]
        lines.append(f"### {done.step.name} ({done.seconds:.1f} s{marked})\n")
        lines.append(fenced(f"{done.call.namespace or ''} {done.call.name}\n{cut(done.call.arguments, 1200)}".strip()))
        for part in done.result.parts:
            lines.append(f"{part.kind}, {len(part.text)} characters:\n\n{fenced(cut(part.text))}")
    return "\n".join(lines) + f"\nNumbers of the job: {NUMBERS}\n"
