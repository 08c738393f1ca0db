"""The documents' blocks of commands, which the tests run as they stand."""

from __future__ import annotations

import re

from engine import REPOSITORY, Broken

# A block with one of these words speaks of containers or of the system service.
WORDS = re.compile(r"\b(docker|podman|kubectl|systemctl)\b")
PAGES = ("docs/operations.md", "docs/cluster.md")

# Blocks that no scene runs, by the page and the heading.
LEFT_OUT = {
    ("docs/operations.md", "Podman and rootless engines"): "pasted by hand with Podman 5.4.2 and podman-compose 1.3.0",
    ("docs/cluster.md", "Start on Kubernetes"): "there is no Kubernetes; lints.py looks at the manifests",
    ("docs/cluster.md", "Upgrades"): "there is no Kubernetes",
}


class Pages:
    """The blocks by page and heading, and those that were taken."""

    def __init__(self) -> None:
        self.blocks: dict[tuple[str, str], list[str]] = {}
        self.taken: set[tuple[str, str, int]] = set()
        for page in PAGES:
            self._read(page, (REPOSITORY / page).read_text())

    def _read(self, page: str, text: str) -> None:
        heading, block = "", None
        for line in text.splitlines():
            if block is not None and line.startswith("```"):
                self.blocks.setdefault((page, heading), []).append("\n".join(block) + "\n")
                block = None
            elif block is not None:
                block.append(line)
            elif line == "```sh":
                block = []
            elif found := re.match(r"#+ (.*)", line):
                heading = found[1]

    def take(self, page: str, heading: str, number: int) -> str:
        """The block of that number under a heading. Each line must be right by itself."""
        blocks = self.blocks.get((page, heading), [])
        if number >= len(blocks):
            raise Broken(f"{page} has no block {number} under '{heading}'")
        self.taken.add((page, heading, number))
        return blocks[number]

    def left(self) -> list[str]:
        """The blocks about containers that no test took."""
        return [
            f"{page}, '{heading}', block {number}"
            for (page, heading), blocks in self.blocks.items()
            for number, block in enumerate(blocks)
            if WORDS.search(block) and (page, heading, number) not in self.taken and (page, heading) not in LEFT_OUT
        ]
