"""Difficult pictures in prompts, checked against the providers' published limits.

    target/venv-tools/bin/python tests/provider_images.py http://127.0.0.1:8733 [--save FOLDER]

Makes pictures with Pillow that a provider rejects or cannot read, posts them in every way, reads the prompt in each
provider's format, decodes what is shown with Pillow, and says in one line for each prompt whether all of it is within
the provider's limits. With --save, it writes what is shown into a folder, to be looked at.
"""

import argparse
import base64
import io
import json
import pathlib
import random
import sys
import urllib.parse
import urllib.request
import uuid

from PIL import Image, ImageDraw, ImageFile

ImageFile.LOAD_TRUNCATED_IMAGES = False
Image.MAX_IMAGE_PIXELS = None

# Published by the providers, as read on 2026-11-28.
LIMITS = {
    # platform.claude.com, "Vision" and "API overview".
    "anthropic": {
        "types": {"image/png", "image/jpeg", "image/gif", "image/webp"},
        "images": 100,
        "side": lambda images: 2000 if images > 20 else 8000,
        "base64": 5_000_000,
        "request": 32_000_000,
    },
    # developers.openai.com, "Images and vision".
    "responses": {
        "types": {"image/png", "image/jpeg", "image/gif", "image/webp"},
        "images": 500,
        "side": lambda images: None,
        "base64": 20_000_000,
        "request": 50_000_000,
    },
    # ai.google.dev and Vertex AI, "Image understanding".
    "gemini": {
        "types": {"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"},
        "images": 900,
        "side": lambda images: None,
        "base64": 7_000_000 * 4 // 3 + 4,
        "request": 20_000_000,
    },
}
RED, GREEN, BLUE, WHITE = (200, 30, 30), (30, 160, 60), (40, 60, 200), (250, 250, 250)
# How far a colour may be off after it was scaled or became a JPEG.
COLOUR_TOLERANCE = 40


class Fault(Exception):
    """Something of a prompt that the provider would reject."""


def corners(width, height):
    """A picture whose corners are red, green, blue and white, with lines like those of a page."""
    picture = Image.new("RGB", (width, height), (128, 128, 128))
    draw = ImageDraw.Draw(picture)
    w, h = max(width // 4, 1), max(height // 4, 1)
    for (x, y), colour in zip([(0, 0), (width - w, 0), (0, height - h), (width - w, height - h)], (RED, GREEN, BLUE, WHITE)):
        draw.rectangle([x, y, x + w - 1, y + h - 1], fill=colour)
    for y in range(h, height - h, 24):
        draw.line([w, y, width - w, y], fill=(20, 20, 20), width=2)
    return picture


def noise(width, height):
    return Image.frombytes("RGB", (width, height), random.Random(7).randbytes(width * height * 3))


def file(picture, kind, **options):
    out = io.BytesIO()
    picture.save(out, kind, **options)
    return out.getvalue()


def turned():
    """A JPEG that lies on its side, and whose Exif data says so."""
    exif = Image.Exif()
    exif[0x0112] = 6
    return file(corners(400, 300).transpose(Image.Transpose.ROTATE_90), "JPEG", exif=exif, quality=95)


def bmp_without_alpha():
    """A BMP of four channels whose alpha is zero everywhere, as some programs write it."""
    data = bytearray(file(corners(200, 150).convert("RGBA"), "BMP"))
    at = int.from_bytes(data[10:14], "little")
    data[at + 3 :: 4] = bytes(len(data[at + 3 :: 4]))
    return bytes(data)


def half(data):
    return data[: len(data) // 2]


def pictures():
    """Each picture: its name, its media type, its file, and whether a model can be shown it."""
    photo = corners(8000, 6000)
    animation = [corners(120, 90), corners(120, 90).transpose(Image.Transpose.ROTATE_180)]
    yield "png", "image/png", file(corners(640, 480), "PNG"), True
    yield "side of 9,000", "image/png", file(corners(9000, 200), "PNG"), True
    yield "page 1,600 x 18,000", "image/png", file(corners(1600, 18000), "PNG"), True
    yield "three screens of 4K", "image/png", file(corners(11520, 2160), "PNG"), True
    yield "photo of 48 megapixels", "image/jpeg", file(photo, "JPEG", quality=90), True
    yield "noise of 14 MB", "image/png", file(noise(2400, 1950), "PNG"), True
    yield "noise of 14 MB as a JPEG", "image/jpeg", file(noise(3300, 3000), "JPEG", quality=98), True
    yield "half a PNG", "image/png", half(file(corners(640, 480), "PNG")), False
    yield "half a JPEG", "image/jpeg", half(file(noise(640, 480), "JPEG")), False
    yield "half a WebP", "image/webp", half(file(noise(640, 480), "WEBP")), False
    yield "turned JPEG", "image/jpeg", turned(), True
    yield "BMP", "image/bmp", file(corners(300, 200), "BMP"), True
    yield "BMP with an alpha of zeros", "image/bmp", bmp_without_alpha(), True
    yield "GIF", "image/gif", file(corners(300, 200), "GIF"), True
    yield "GIF that moves", "image/gif", file(animation[0], "GIF", save_all=True, append_images=animation[1:]), True
    yield "WebP", "image/webp", file(corners(300, 200), "WEBP", lossless=True), True
    yield "PNG of 16 bits", "image/png", file(corners(300, 200).convert("I;16"), "PNG"), True
    yield "PNG of a palette", "image/png", file(corners(300, 200).quantize(16), "PNG"), True
    yield "JPEG of CMYK", "image/jpeg", file(corners(300, 200).convert("CMYK"), "JPEG", quality=95), True
    yield "TIFF", "image/tiff", file(corners(300, 200), "TIFF"), False


def request(url, method="GET", data=None, media_type="application/json"):
    asked = urllib.request.Request(url, data, {"Content-Type": media_type}, method=method)
    with urllib.request.urlopen(asked) as answer:
        return answer.read(), answer.headers


KINDS = {"PNG": "image/png", "JPEG": "image/jpeg", "GIF": "image/gif", "WEBP": "image/webp", "BMP": "image/bmp", "TIFF": "image/tiff"}


def canonical(name, media_type, data):
    url = f"data:{media_type};base64,{base64.b64encode(data).decode()}"
    return json.dumps({"metadata": name, "image_path": "", "image_str": url}).encode(), "application/json", ""


def as_browsers_read(name, media_type, data):
    """A data URL that is not canonical, which stays a string."""
    text = base64.b64encode(data).decode().rstrip("=")
    text = "\n".join(text[at : at + 76] for at in range(0, len(text), 76))
    url = f"data:{media_type.upper()}; BASE64,{text}"
    return json.dumps({"metadata": name, "image_path": "", "image_str": url}).encode(), "application/json", ""


def as_bytes(name, media_type, data):
    query = urllib.parse.urlencode({"metadata": json.dumps(name)})
    return data, media_type, f"?{query}"


def post(session, way, pictures):
    """The names of those that were taken and may be shown."""
    names = []
    for name, media_type, data, is_shown in pictures:
        # A string has at most 1 MiB, and bytes are of a known kind.
        if way is as_browsers_read and len(data) > 700_000 or way is as_bytes and media_type == "image/tiff":
            continue
        body, body_type, query = way(name, media_type, data)
        answer, _ = request(f"{session}/screenshots{query}", "POST", body, body_type)
        warned = bool(json.loads(answer).get("warnings"))
        if not is_shown and not warned:
            raise Fault(f"{name} was posted without a warning")
        if is_shown:
            names.append(name)
    return names


def shown(form, server, blocks):
    """The text before each image, its media type, its base64, its bytes."""
    text = None
    for block in blocks:
        if (said := block.get("text")) is not None:
            text = said
            continue
        if form == "anthropic":
            source = block["source"]
            url, media_type, encoded = source.get("url"), source.get("media_type"), source.get("data")
        elif form == "gemini":
            data = block.get("inlineData") or block["fileData"]
            url, media_type, encoded = data.get("fileUri"), data["mimeType"], data.get("data")
        else:
            url, media_type, encoded = block["image_url"], None, None
            if url.startswith("data:"):
                media_type, encoded = url.removeprefix("data:").split(";base64,")
        if encoded is None:
            image, headers = request(urllib.parse.urljoin(server, url))
            if media_type not in (None, headers["Content-Type"]):
                raise Fault(f"{text}: {headers['Content-Type']} and not {media_type}")
            media_type, encoded = headers["Content-Type"], base64.b64encode(image).decode()
        yield text, media_type, encoded, base64.b64decode(encoded, validate=True)


def is_near(pixel, colour):
    return all(abs(one - other) <= COLOUR_TOLERANCE for one, other in zip(pixel, colour))


def check_upright(name, picture):
    if "noise" in name or "16 bits" in name:
        return
    rgba = picture.convert("RGBA")
    w, h = rgba.size
    at = [(w // 8, h // 8), (w - 1 - w // 8, h // 8), (w // 8, h - 1 - h // 8), (w - 1 - w // 8, h - 1 - h // 8)]
    for (x, y), colour in zip(at, (RED, GREEN, BLUE, WHITE)):
        *pixel, alpha = rgba.getpixel((x, y))
        if alpha < 250 or not is_near(pixel, colour):
            raise Fault(f"{name}: at {x}, {y} is {pixel}, {alpha}, and not {colour}")


def check(form, server, answer, names, save):
    limits = LIMITS[form]
    images = list(shown(form, server, json.loads(answer)))
    found = [name for name in names if any(json.dumps(name) == text for text, *_ in images)]
    if len(images) > limits["images"]:
        raise Fault(f"{len(images)} images")
    if len(answer) > limits["request"]:
        raise Fault(f"a request of {len(answer)} bytes")
    side = limits["side"](len(images))
    for text, media_type, encoded, data in images:
        with Image.open(io.BytesIO(data)) as picture:
            picture.load()
            if media_type not in limits["types"] or KINDS[picture.format] != media_type:
                raise Fault(f"{text}: {media_type}, {picture.format}")
            if form == "responses" and getattr(picture, "is_animated", False):
                raise Fault(f"{text} moves")
            if side is not None and max(picture.size) > side:
                raise Fault(f"{text}: {picture.size} among {len(images)}")
            if len(encoded) > limits["base64"]:
                raise Fault(f"{text}: {len(encoded)} bytes of base64")
            check_upright(text, picture)
            if save is not None:
                picture.convert("RGBA").save(save / f"{form} {text.strip(chr(34)).replace(' ', '_')} {picture.size[0]}x{picture.size[1]}.png")
    return len(images), found


def small(count):
    return [(f"small {index}", "image/png", file(corners(2100 + index, 60), "PNG"), True) for index in range(count)]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("server")
    parser.add_argument("--save", type=pathlib.Path)
    options = parser.parse_args()
    server, failed = options.server.rstrip("/"), 0
    hard = list(pictures())
    boards = [
        (way.__name__, way, picked)
        for way, picked in [
            (as_bytes, hard),
            (canonical, [picture for picture in hard if len(picture[2]) < 15_000_000]),
            (as_browsers_read, hard),
            (as_bytes, small(30) + hard),
            (as_bytes, small(120)),
        ]
    ]
    for title, way, picked in boards:
        session = f"{server}/v1/sessions/images-{uuid.uuid4()}"
        names = post(session, way, picked)
        for form in LIMITS:
            for images in ("inline", "url"):
                # A string that is no stored image has no address.
                if images == "url" and way is as_browsers_read:
                    continue
                try:
                    answer, _ = request(f"{session}/prompt?format={form}&images={images}&include=screenshots")
                    count, found = check(form, server, answer, names, options.save if title == "as_bytes" and images == "inline" and picked is hard else None)
                    missing = [name for name in names if name not in found]
                    print(f"{title} of {len(picked)}, {form}, {images}: {count} images, {len(answer):,} bytes; lines: {', '.join(missing) or 'none'}")
                    # Only the oldest go where all have no room; by an address there is room for as many as are taken.
                    if missing != names[: len(missing)] or images == "url" and len(missing) > max(0, len(names) - LIMITS[form]["images"]):
                        raise Fault(f"not shown: {missing}")
                except (Fault, KeyError, ValueError, OSError) as fault:
                    print(f"{title} of {len(picked)}, {form}, {images}: {type(fault).__name__}: {fault}")
                    failed += 1
        request(session, "DELETE")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
