"""Screenshots: images with their metadata."""

from __future__ import annotations

from typing import Any

from typing_extensions import Unpack

from .._wire import WriteOptions
from ..images import Image, data_url, read_image
from ..values import Appended
from .logs import AsyncLog


class AsyncScreenshots(AsyncLog):
    """The screenshots of a session. Entries show the address of an image; `images="inline"` shows the image."""

    async def add(
        self, image: Image, *, metadata: Any = None, image_path: str | None = None, **options: Unpack[WriteOptions]
    ) -> Appended:
        """Append an image from a path, bytes or a PIL image.

        `image_path` is a label, the path by default. A step with the member `screenshot`, the seq, is shown with the
        image by the page. Raises UnsupportedValue for what is no image, and OSError.
        """
        return await self._append(screenshot(image, metadata, image_path), {}, options)

    async def image(self, seq: int, max_px: int | None = None) -> bytes:
        """The bytes of an image, or of a thumbnail whose longer side has at most `max_px` pixels. Raises NoImage."""
        answer = await self.session.read(f"{self.path}/{int(seq)}/image", {"max_px": max_px})
        return answer.content


def screenshot(image: Image, metadata: Any = None, image_path: str | None = None) -> dict[str, Any]:
    """The item of a screenshot."""
    content, kind, path = read_image(image)
    label = path if image_path is None else image_path
    return {"metadata": metadata, "image_path": label, "image_str": data_url(content, kind)}
