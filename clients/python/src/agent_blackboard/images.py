"""Images for screenshots: read from a path, bytes or a PIL image, and made a data URL."""

from __future__ import annotations

import base64
import io
import os
from typing import Any, Protocol

from .errors import UnsupportedValue

BYTES_MAX = 32 << 20
"""The largest image that is read; the server's limit for a body with it is 32 MiB too."""
_SIGNATURES = {
    "image/png": (b"\x89PNG\r\n\x1a\n", b""),
    "image/jpeg": (b"\xff\xd8\xff", b""),
    "image/gif": (b"GIF8", b""),
    "image/bmp": (b"BM", b""),
    "image/webp": (b"RIFF", b"WEBP"),
}
"""What the images of a type begin with, and what stands eight bytes after the begin."""


class PillowImage(Protocol):
    """An image of Pillow, which this package does not import."""

    def save(self, fp: Any, format: str | None = None) -> None:
        """Write the image."""


Image = str | os.PathLike[str] | bytes | PillowImage


def read_image(image: Image) -> tuple[bytes, str, str]:
    """Bytes, media type and path (empty where there is none) of an image. Raises UnsupportedValue or OSError."""
    path = ""
    if isinstance(image, (bytes, bytearray, memoryview)):
        content = bytes(image)
    elif isinstance(image, (str, os.PathLike)):
        path = os.fspath(image)
        if os.path.getsize(path) > BYTES_MAX:
            raise UnsupportedValue(f"{path} has more than {BYTES_MAX >> 20} MiB")
        with open(path, "rb") as file:
            content = file.read()
    elif callable(getattr(image, "save", None)):
        buffer = io.BytesIO()
        image.save(buffer, format="PNG")
        content = buffer.getvalue()
    else:
        raise UnsupportedValue(f"an image is a path, bytes or a PIL image, not {type(image).__name__}")
    if len(content) > BYTES_MAX:
        raise UnsupportedValue(f"the image has more than {BYTES_MAX >> 20} MiB")
    return content, media_type(content), path


def media_type(content: bytes) -> str:
    """The media type by the first bytes. Raises UnsupportedValue for what is no image that the server takes."""
    for kind, (begin, then) in _SIGNATURES.items():
        if content.startswith(begin) and content.startswith(then, 8):
            return kind
    kinds = ", ".join(kind.removeprefix("image/").upper() for kind in _SIGNATURES)
    raise UnsupportedValue(f"not an image of a type that the server takes ({kinds})")


def data_url(content: bytes, kind: str) -> str:
    """The data URL of an image."""
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
