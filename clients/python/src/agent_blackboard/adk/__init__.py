"""Services of Google's Agent Development Kit on boards: sessions, artifacts, memory."""

from .artifacts import BlackboardArtifactService
from .memory import BlackboardMemoryService
from .sessions import BlackboardSessionService

__all__ = ["BlackboardArtifactService", "BlackboardMemoryService", "BlackboardSessionService"]
