"""Drop-in for UFO's `ufo.agents.memory`: the same classes, with the board on a Blackboard server.

Address, token and session come from BLACKBOARD_URL, BLACKBOARD_TOKEN and BLACKBOARD_SESSION, or from `configure(…)`.
`python -m agent_blackboard.ufo -- <command>` runs a program of UFO's with these classes, without an edit.
"""

from .asker import question_asker
from .blackboard import Blackboard
from .connection import trips
from .item import ImageMemoryItem, ImageMemoryItemNames, MemoryItem
from .memory import Memory
from .process import close, flush, pending, refused
from .settings import configure

__all__ = [
    "Blackboard",
    "ImageMemoryItem",
    "ImageMemoryItemNames",
    "Memory",
    "MemoryItem",
    "close",
    "configure",
    "flush",
    "pending",
    "question_asker",
    "refused",
    "trips",
]
