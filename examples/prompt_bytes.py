#!/usr/bin/env python3
"""Bytes of a task's prompts: fifty steps, with a screenshot at every tenth.

After each step the prompt is read twice: with UFO's settings and with our defaults.

    python3 examples/prompt_bytes.py [http://127.0.0.1:8733]

Where the server asks for a token it is taken from BLACKBOARD_TOKEN.
"""

import json
import os
import random
import struct
import sys
import urllib.error
import urllib.request
import uuid
import zlib

STEPS = 50
SCREENSHOT_EVERY = 10
WIDTH, HEIGHT = 1920, 1080
# With so much text and so large a picture, the PNG of a screen has about 200 KB.
TEXT_COLUMNS, TEXT_LINES = 92, 50
PICTURE_WIDTH, PICTURE_HEIGHT = 320, 180
GLYPH_WIDTH, GLYPH_HEIGHT = 8, 11
BAR, LINE_HEIGHT, MARGIN = 60, 18, 40
INK, PAPER = bytes([30, 30, 40]), bytes([250, 250, 252])

KINDS = {
    "as the original": "/prompt",
    "screenshots=3&max_px=1024": "/prompt?screenshots=3&max_px=1024",
}


def png(rows):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 2, 0, 0, 0)
    packed = zlib.compress(b"".join(b"\0" + row for row in rows), 6)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def letter(rng):
    """A made-up letter of a few strokes, row by row."""
    cells = [[PAPER] * GLYPH_WIDTH for _ in range(GLYPH_HEIGHT)]
    for _ in range(3):
        x, y = rng.randrange(GLYPH_WIDTH - 2), rng.randrange(GLYPH_HEIGHT)
        if rng.random() < 0.5:
            for row in cells[min(y, 4) :]:
                row[x] = INK
        else:
            cells[y][: GLYPH_WIDTH - 2] = [INK] * (GLYPH_WIDTH - 2)
    return [b"".join(row) for row in cells]


def text(rng):
    """Lines of words in such letters, as rows of pixels."""
    blank = PAPER * GLYPH_WIDTH
    letters = [letter(rng) for _ in range(60)]
    for _ in range(TEXT_LINES):
        line = [rng.choice(letters) if rng.random() < 0.83 else None for _ in range(TEXT_COLUMNS)]
        for row in range(LINE_HEIGHT):
            inked = row < GLYPH_HEIGHT
            yield b"".join(glyph[row] if glyph and inked else blank for glyph in line)


def picture(rng):
    """Something like a photograph: colours that run into one another, and grain."""
    for y in range(PICTURE_HEIGHT):
        grain = rng.randbytes(3 * PICTURE_WIDTH)
        yield bytes(x // 9 + y // 3 + (grain[x] & 15) for x in range(3 * PICTURE_WIDTH))


def screenshot(seed):
    """A window with text and a picture beside it, between a title and a status line."""
    rng = random.Random(seed)
    bar = bytes([60, 90 + seed % 64, 160])
    beside = list(picture(rng))
    rows = [bar * WIDTH] * BAR
    for row in text(rng):
        begin = PAPER * MARGIN + row + PAPER * MARGIN
        pixels = beside.pop() if beside else b""
        rows.append((begin + pixels).ljust(3 * WIDTH, PAPER[:1]))
    rows += [PAPER * WIDTH] * (HEIGHT - BAR - len(rows))
    rows += [bar * WIDTH] * BAR
    return png(rows)


def call(method, url, body=None, media_type="application/json"):
    request = urllib.request.Request(url, body, {"Content-Type": media_type}, method=method)
    if "BLACKBOARD_TOKEN" in os.environ:
        request.add_header("Authorization", "Bearer " + os.environ["BLACKBOARD_TOKEN"])
    with urllib.request.urlopen(request) as answer:
        return answer.read()


def step_item(step):
    """A step of an agent, as UFO's trajectories have them."""
    return {
        "step": step,
        "agent": "AppAgent",
        "subtask": "Fill in the totals of the second quarter and check them against the invoices",
        "thought": f"The cell of row {step} is empty, and the invoice that belongs to it is open in the other window.",
        "action": [{"function": "set_edit_text", "args": {"control": "B7", "text": f"{step * 1234.5:.2f}"}}],
        "results": [{"status": "SUCCESS", "error": None, "result": f"the text of B{step} was set"}],
        "status": "CONTINUE",
        "time_cost": step * 0.37,
    }


def main():
    server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8733"
    session = f"{server}/v1/sessions/prompt-bytes-{uuid.uuid4()}"
    call("POST", f"{session}/requests", json.dumps("Fill in the second quarter").encode())
    weights = dict.fromkeys(KINDS, 0)
    images = []
    for step in range(1, STEPS + 1):
        call("POST", f"{session}/trajectories", json.dumps(step_item(step)).encode())
        if step % SCREENSHOT_EVERY == 0:
            images.append(screenshot(step))
            call("POST", f"{session}/screenshots", images[-1], "image/png")
        for kind, path in KINDS.items():
            weights[kind] += len(call("GET", session + path))
    call("DELETE", session)
    print(f"{STEPS} steps, {len(images)} screenshots of {sum(map(len, images)) // len(images):,} bytes each")
    most = weights["as the original"]
    print(f"{'prompt':<28}{'bytes of all':>14}{'of the original':>17}")
    for kind, weight in weights.items():
        print(f"{kind:<28}{weight:>14,}{weight / most:>16.1%}")


if __name__ == "__main__":
    try:
        main()
    except urllib.error.HTTPError as error:
        sys.exit(f"the server refuses: {error.code} {error.read().decode(errors='replace').strip()}")
    except urllib.error.URLError as error:
        sys.exit(f"cannot reach the server: {error.reason}; start it with: cargo run --release -- serve")
