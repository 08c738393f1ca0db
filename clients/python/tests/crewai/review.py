"""Flows of the tests: one that is killed in its work, and one that waits for a person's feedback."""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

from crewai.flow.async_feedback import HumanFeedbackPending, PendingFeedbackContext
from crewai.flow.flow import Flow, listen, start
from crewai.flow.human_feedback import HumanFeedbackResult, human_feedback
from crewai.flow.persistence import persist
from crewai.flow.persistence.base import FlowPersistence
from pydantic import BaseModel

CHAPTERS = 4


class Book(BaseModel):
    """The state of a flow that writes chapters."""

    id: str = ""
    chapters: list[str] = []


def writing(persistence: FlowPersistence, killed_at: int = -1) -> Flow[Book]:
    """A flow that writes the chapters that are missing, and is killed before it ends chapter `killed_at`."""

    @persist(persistence)
    class Writing(Flow[Book]):
        def write(self, number: int) -> None:
            if len(self.state.chapters) > number:
                return
            if number == killed_at:
                os.kill(os.getpid(), signal.SIGKILL)
            self.state.chapters.append(f"chapter {number}, by {os.getpid()}")

        @start()
        def first(self) -> None:
            self.write(0)

        @listen(first)
        def second(self) -> None:
            self.write(1)

        @listen(second)
        def third(self) -> None:
            self.write(2)

        @listen(third)
        def fourth(self) -> None:
            self.write(3)

    return Writing(suppress_flow_events=True)


class Elsewhere:
    """A provider of feedback that somebody gives later, to another process."""

    def request_feedback(self, context: PendingFeedbackContext, flow: Flow[Any]) -> str:
        raise HumanFeedbackPending(context=context)


class Review(Flow[dict[str, Any]]):
    """A flow that shows a draft, and goes on with what a person says of it."""

    @start()
    @human_feedback(message="May this be printed?", provider=Elsewhere(), metadata={"room": 7})
    def draft(self) -> dict[str, str]:
        self.state["draft"] = "Tea at four"
        return {"title": "Invitation", "body": self.state["draft"]}

    @listen(draft)
    def publish(self, result: HumanFeedbackResult) -> str:
        self.state["said"] = result.feedback
        return f"{result.output['title']}: {result.feedback}"


if __name__ == "__main__":
    from agent_blackboard.crewai import BlackboardFlowPersistence

    writing(BlackboardFlowPersistence(url=sys.argv[1]), int(sys.argv[3])).kickoff(inputs={"id": sys.argv[2]})
