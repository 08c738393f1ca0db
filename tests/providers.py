"""Prompts in each format, checked by the provider's own types.

    target/venv-tools/bin/python tests/providers.py http://127.0.0.1:8733

Posts a board with something of everything, reads its prompt in each format in several ways, and says in one
line for each format whether all of it is what the provider's client would take.
"""

import base64
import binascii
import json
import struct
import sys
import urllib.error
import urllib.request
import uuid
import zlib
from urllib.parse import urljoin

import pydantic
from anthropic.types import ContentBlockParam, MessageParam
from google.genai import types as gemini
from openai.types.chat import ChatCompletionContentPartParam, ChatCompletionUserMessageParam
from openai.types.responses import EasyInputMessageParam, ResponseInputContentParam

INCLUDE = "questions,requests,trajectories,screenshots,state,memory:HostAgent"

# How each kind of image begins, and at which byte.
KINDS = {
    "image/png": (0, b"\x89PNG\r\n\x1a\n"),
    "image/jpeg": (0, b"\xff\xd8\xff"),
    "image/gif": (0, b"GIF8"),
    "image/webp": (8, b"WEBP"),
    "image/bmp": (0, b"BM"),
}

# What the providers take. The original shows whatever it is given, and so does `parts`.
TAKEN = {
    "parts": set(KINDS),
    "responses": {"image/png", "image/jpeg", "image/gif", "image/webp"},
    "anthropic": {"image/png", "image/jpeg", "image/gif", "image/webp"},
    "gemini": {"image/png", "image/jpeg", "image/webp"},
}

ANTHROPIC_MARKS_MAX = 4
# How much of a fault is shown: pydantic lists each kind of block that it is not.
SAID_MAX = 2000
TOKENS_MAX = 6000

JPEG = base64.b64decode(
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAP//////////////////////////////////////////////////////////////////////////"
    "////////////2wBDAf//////////////////////////////////////////////////////////////////////////////////////wAAR"
    "CAADAAIDASIAAhEBAxEB/8QAFQABAQAAAAAAAAAAAAAAAAAAAAL/xAAUEAEAAAAAAAAAAAAAAAAAAAAA/8QAFQEBAQAAAAAAAAAAAAAAAAAA"
    "AQL/xAAUEQEAAAAAAAAAAAAAAAAAAAAA/9oADAMBAAIRAxEAPwCQAt//2Q=="
)
BMP = base64.b64decode(
    "Qk1OAAAAAAAAADYAAAAoAAAAAgAAAAMAAAABABgAAAAAABgAAADEDgAAxA4AAAAAAAAAAAAACh7ICh7IAAAKHsgKHsgAAAoeyAoeyAAA"
)


class Fault(Exception):
    """Something of a prompt that the provider would not take."""


def png(width, height, shade):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes([shade]) * width) * height)
    return KINDS["image/png"][1] + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def data_url(media_type, image):
    return f"data:{media_type};base64,{base64.b64encode(image).decode()}"


def request(url, method="GET", body=None):
    """The answer's body and headers."""
    data = None if body is None else json.dumps(body).encode()
    asked = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(asked) as answer:
            return answer.read(), answer.headers
    except urllib.error.HTTPError as refusal:
        raise Fault(f"{method}: {refusal.code} {refusal.read().decode().strip()}") from None


def board():
    """A board as the wire has it. Its last screenshot has an image that all take."""
    text = 'Ein "Zitat" \\ 中文 🚀 <b>&amp;</b>\n\tnext line\u2028 \u0000'
    nested = {"a": [1, 2.50, -0.0, None, True, {"中": ["🚀", {}, []]}], "": ""}
    shots = [
        {"metadata": {"app": "Excel", "note": text}, "image_path": "a.png", "image_str": data_url("image/png", png(40, 30, 9))},
        {"metadata": "a JPEG", "image_path": "b.jpg", "image_str": data_url("image/jpeg", JPEG)},
        {"metadata": "no image", "image_path": "c.png"},
        {"metadata": None, "image_path": "", "image_str": "not an image"},
        {"metadata": text, "image_path": "d.bmp", "image_str": data_url("image/bmp", BMP)},
        {"metadata": "the last", "image_path": "e.png", "image_str": data_url("image/png", png(1600, 900, 200))},
    ]
    return {
        "questions": [{"question": "Which file?", "answer": "a.xlsx"}, {"question": text}],
        "requests": [{"request_0": text}, {"request_1": "sum it up", "nested": nested}],
        "trajectories": [
            {"step": step, "agent": "HostAgent", "thought": text, "results": [{"status": "FAIL", **nested}]}
            for step in range(12)
        ],
        "screenshots": shots,
    }


def post(server):
    """A session with that board, a state and a memory; its address."""
    session = f"{server}/v1/sessions/providers-{uuid.uuid4()}"
    request(f"{session}/blackboard", "PUT", board())
    request(f"{session}/agents/HostAgent/memory", "POST", [{"step": 1, "cost": 0.5, "note": "中文"}, {"step": 2}])
    request(f"{session}/state", "PUT", {"tasks": {"t1": {"status": "ready", "n": 1}}, "list": ["🚀"]})
    return session


def conforms(block_kind, message_kind, blocks):
    """Validates content by the client's type of a block, and a message with it. pydantic passes over members that
    a TypedDict does not know, so that whatever is not in what it gives back is one too many."""
    if pydantic.TypeAdapter(list[block_kind]).validate_python(blocks, strict=True) != blocks:
        raise Fault("a block has more than its type knows")
    pydantic.TypeAdapter(message_kind).validate_python({"role": "user", "content": blocks}, strict=True)


def is_kind(media_type, image):
    at, begin = KINDS[media_type]
    return image[at : at + len(begin)] == begin


def image_of(form, media_type, encoded):
    """A base64 image, which must be what it is said to be."""
    try:
        image = base64.b64decode(encoded, validate=True)
    except binascii.Error as fault:
        raise Fault(f"an image's base64: {fault}") from None
    if media_type not in TAKEN[form]:
        raise Fault(f"{media_type} is not taken")
    if not is_kind(media_type, image):
        raise Fault(f"an image that is no {media_type}: {image[:16]}")
    return image


def image_at(form, server, url, media_type=None):
    """The image at a URL of either kind."""
    if not url:
        raise Fault("an image block without an image")
    if url.startswith("data:"):
        said, _, encoded = url.removeprefix("data:").partition(";base64,")
        return image_of(form, said, encoded)
    image, headers = request(urljoin(server, url))
    said = headers["Content-Type"]
    if media_type not in (None, said):
        raise Fault(f"{url} is {said} and not {media_type}")
    return image_of(form, said, base64.b64encode(image))


def parts(server, blocks):
    conforms(ChatCompletionContentPartParam, ChatCompletionUserMessageParam, blocks)
    for block in blocks:
        if block["type"] == "text":
            yield block["text"], None
        else:
            url = block["image_url"]["url"]
            # A screenshot without an image is shown as the original shows it.
            known = url.startswith("data:image/") or "/screenshots/" in url
            yield None, image_at("parts", server, url) if known else b""


def responses(server, blocks):
    conforms(ResponseInputContentParam, EasyInputMessageParam, blocks)
    for block in blocks:
        if block["type"] == "input_text":
            yield block["text"], None
        else:
            yield None, image_at("responses", server, block["image_url"])


def anthropic(server, blocks):
    conforms(ContentBlockParam, MessageParam, blocks)
    for block in blocks:
        if block["type"] == "text":
            yield block["text"], None
        elif block["source"]["type"] == "base64":
            yield None, image_of("anthropic", block["source"]["media_type"], block["source"]["data"])
        else:
            yield None, image_at("anthropic", server, block["source"]["url"])


def google(server, blocks):
    content = {"role": "user", "parts": blocks}
    gemini.Content.model_validate_json(json.dumps(content))
    for block in blocks:
        if len(block) != 1:
            raise Fault(f"a part is one thing: {list(block)}")
        if "text" in block:
            yield block["text"], None
        elif "inlineData" in block:
            yield None, image_of("gemini", block["inlineData"]["mimeType"], block["inlineData"]["data"])
        else:
            file = block["fileData"]
            yield None, image_at("gemini", server, file["fileUri"], file["mimeType"])


FORMATS = {"parts": parts, "responses": responses, "anthropic": anthropic, "gemini": google}

# How the prompts are asked for, and how many images each then has. Of the six screenshots four have one; the BMP,
# which no provider takes, is converted.
WAYS = {
    "images=inline": 4,
    "images=url": 4,
    "images=none": 0,
    "images=inline&max_px=256": 4,
    "images=inline&screenshots=1": 1,
    "images=url&screenshots=1": 1,
    f"images=inline&screenshots=1&cache_marks=true&max_tokens={TOKENS_MAX}": 1,
    f"images=url&screenshots=1&cache_marks=true&max_tokens={TOKENS_MAX}": 1,
}


def check_texts(texts):
    """A provider refuses a text block that says nothing."""
    if any(not text.strip() for text in texts):
        raise Fault("a text without a word")
    for heading in ("Questions", "Request", "Step", "State", "Memory of HostAgent"):
        if not any(heading in text for text in texts):
            raise Fault(f"no {heading}")


def check_marks(form, way, blocks):
    marks = sum("cache_control" in block for block in blocks)
    wanted = form == "anthropic" and "cache_marks" in way
    if not (1 <= marks <= ANTHROPIC_MARKS_MAX if wanted else marks == 0):
        raise Fault(f"{marks} cache marks")


def check_images(form, way, images):
    if form == "parts":
        return
    if len(images) != WAYS[way]:
        raise Fault(f"{len(images)} images and not {WAYS[way]}")
    if way == "images=inline" and not {JPEG, png(40, 30, 9)} <= set(images):
        raise Fault("an image that is taken is not what was posted")


def check_prompt(form, way, server, answer, headers):
    if int(headers.get("Blackboard-Tokens") or 0) > TOKENS_MAX and "max_tokens" in way:
        raise Fault(f"{headers['Blackboard-Tokens']} tokens")
    if form == "markdown":
        text = answer.decode()
        check_texts([text])
        if text.lstrip().startswith(("[{", '{"')):
            raise Fault("JSON")
        return
    blocks = json.loads(answer)
    shown = list(FORMATS[form](server, blocks))
    check_texts([text for text, _ in shown if text is not None])
    check_images(form, way, [image for _, image in shown if image is not None])
    check_marks(form, way, blocks)


def main():
    server = sys.argv[1].rstrip("/")
    session = post(server)
    failed = 0
    for form in [*FORMATS, "markdown"]:
        faults = []
        for way in WAYS:
            try:
                answer, headers = request(f"{session}/prompt?format={form}&include={INCLUDE}&{way}")
                check_prompt(form, way, server, answer, headers)
            except (Fault, KeyError, TypeError, AttributeError, ValueError) as fault:
                faults.append(f"{way}: {type(fault).__name__}: {str(fault)[:SAID_MAX]}")
        print(f"{form}: {len(WAYS) - len(faults)} of {len(WAYS)} as the provider has it", *faults, sep="\n  ")
        failed += len(faults)
    request(session, "DELETE")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
