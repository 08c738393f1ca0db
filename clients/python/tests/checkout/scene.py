"""Script of fifty steps: the turns, the model's answers, the screens.

Everything is derived from the step's number, so that each process and each run sees the same scene.
"""

from __future__ import annotations

import base64
import io
import json
import random
from dataclasses import dataclass
from typing import Any

from PIL import Image, ImageDraw

STEPS = 50
PICTURE = (480, 220)
ROUND_ENDS = (25, STEPS - 1)
ASKING = (12, 30)
REQUEST = "Gather the quarterly figures, write the report “Übersicht” and send it to 王偉 📨"
WINDOWS = {"app1": ("Report — Word", "WINWORD.EXE"), "app2": ("Figures — Excel", "EXCEL.EXE")}


@dataclass(frozen=True)
class Turn:
    """Turn of one agent: a step, and what UFO does before it yields to its event loop again.

    `kind` is `step`; `ask`, a step whose questions nobody answers; or `round`, a host's step that ends the round.
    """

    kind: str
    agent: str
    step: int

    def answer(self) -> str:
        """Scripted answer of the model, the JSON text that UFO parses."""
        if self.kind == "round":
            return json.dumps(host_answer(self.step, status="FINISH"))
        return json.dumps(host_answer(self.step) if self.agent == "host" else app_answer(self.step))


def turns() -> list[Turn]:
    """Turns of the fifty steps: a host's step before each four of its agents, and two rounds that end."""
    script = []
    for step in range(STEPS):
        host = step % 5 == 0 or step in ROUND_ENDS
        agent = "host" if host else ("app1", "app2")[(step // 5 + step) % 2]
        script.append(Turn("round" if step in ROUND_ENDS else "ask" if step in ASKING else "step", agent, step))
    return script


def questions(step: int) -> list[str]:
    """Questions that an agent asks after this step."""
    return [f"Which quarter is part {step}?", f"Wer erhält Teil {step}?", f"Is the draft — “v{step}” — final? 🙂"]


def saves_screenshot(step: int) -> bool:
    """Whether the agent of this step saves its screenshot to the board: every fifth does."""
    return step % 5 == 3


def app_of(step: int) -> str:
    """AppAgent that the host's step selects."""
    return ("app1", "app2")[(step // 5 + step + 1) % 2]


def host_answer(step: int, *, status: str = "ASSIGN") -> dict[str, Any]:
    """Answer of a HostAgent, as its response schema has it."""
    finished = status == "FINISH"
    target = "1" if app_of(step) == "app1" else "2"
    return {
        "observation": f"Step {step}: Word and Excel are open — both “ready”.",
        "thought": "The next part belongs to one of them. 数据",
        "status": status,
        "message": [f"Mind the units of part {step}"],
        "questions": [],
        "current_subtask": f"Part {step} of the report",
        "plan": [f"Part {step + 5}", "Send the report"],
        "comment": None if step % 2 else f"Going on with part {step}",
        "function": None if finished else "select_application_window",
        "arguments": {} if finished else {"id": target, "name": f"{WINDOWS[app_of(step)][0]} {step}"},
        "result": "The report is sent" if finished else None,
    }


def app_answer(step: int, *, status: str = "CONTINUE") -> dict[str, Any]:
    """Answer of an AppAgent, as its response schema has it."""
    return {
        "observation": f"Step {step}: the cursor is in cell B{step}.",
        "thought": "Type the figure, then go on. 🧮",
        "plan": [f"Fill B{step + 1}", "Save"],
        "comment": "",
        "action": {
            "function": "set_edit_text",
            "arguments": {"id": str(step % 3 + 1), "text": f'{step}.50 €\n"{"x" * (step % 7)}"'},
            "status": status,
        },
        "save_screenshot": {"save": saves_screenshot(step), "reason": f"The figures of step {step} — “final”"},
        "result": {"cells": step} if status == "FINISH" else None,
    }


def screenshot(step: int) -> str:
    """Screen of a step as the data URL of a PNG; one that is saved has a picture in it, which compresses badly."""
    image = Image.new("RGB", (640, 360), (step * 5 % 256, step * 11 % 256, 160))
    draw = ImageDraw.Draw(image)
    for row in range(0, 360, 24):
        draw.rectangle((20, row, 20 + (row * 7 + step * 31) % 580, row + 16), fill=(row % 256, 200, step * 3 % 256))
    draw.text((40, 40), f"step {step}", fill=(0, 0, 0))
    if saves_screenshot(step):
        image.paste(
            Image.frombytes("RGB", PICTURE, random.Random(step).randbytes(3 * PICTURE[0] * PICTURE[1])), (60, 120)
        )
    encoded = io.BytesIO()
    image.save(encoded, "PNG")
    return "data:image/png;base64," + base64.b64encode(encoded.getvalue()).decode()


def tool_result(tool: str, step: int, agent: str) -> Any:
    """Result of a tool of UFO's Windows client, as the strategies expect it."""
    title, root = WINDOWS["app2" if agent == "app2" else "app1"]
    if tool in ("capture_desktop_screenshot", "capture_window_screenshot"):
        return screenshot(step)
    if tool == "get_desktop_app_target_info":
        return [
            {"kind": "window", "id": str(number), "name": name, "type": process, "rect": [0, 0, 640, 360]}
            for number, (name, process) in enumerate(WINDOWS.values(), 1)
        ]
    if tool == "get_app_window_info":
        return {"control_text": title, "control_type": "Window", "control_rect": [0, 0, 640, 360]}
    if tool == "get_app_window_controls_target_info":
        return [
            {
                "kind": "control",
                "id": str(n),
                "name": f"Cell {n}",
                "type": "Edit",
                "rect": [20 * n, 30, 20 * n + 90, 60],
            }
            for n in range(1, 4)
        ]
    if tool == "select_application_window":
        return {"root_name": root, "window_name": title}
    if tool == "list_tools":
        return [
            {
                "tool_key": "action.set_edit_text",
                "tool_name": "set_edit_text",
                "namespace": "AppUIExecutor",
                "tool_type": "action",
                "description": "Sets the text of a control",
                "input_schema": {
                    "type": "object",
                    "properties": {"id": {"type": "string"}, "text": {"type": "string"}},
                },
                "output_schema": {"type": "object", "properties": {"result": {"type": "string"}}},
            }
        ]
    return f"{tool} done at step {step}"
