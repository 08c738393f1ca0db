"""A LangGraph graph on a board: it drafts mails, and asks before it sends each. Watch and answer it in the page.

Run `blackboard serve`, then, with `pip install './clients/python[langgraph]' langgraph`, this file. Kill it while it
waits and start it again: it goes on with the question that is open.
"""

from __future__ import annotations

import operator
import sys
from typing import Annotated
from urllib.parse import quote

from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.types import interrupt

from agent_blackboard.langgraph import BlackboardSaver, resume

GUESTS = ["Ann", "Ben", "Cem"]
WAIT_SECONDS = 3600


class Mails(MessagesState):
    """The mails of a thread: what was said, who got one, and whose turn it is."""

    sent: Annotated[list[str], operator.add]
    next: int


def write(state: Mails) -> dict:
    """Draft the mail to the next guest, as a model would."""
    guest = GUESTS[state["next"]]
    call = {"name": "send_mail", "args": {"to": guest, "body": "Tea at four?"}, "id": f"call_{guest}"}
    return {"messages": [AIMessage(f"I would write to {guest}.", tool_calls=[call])]}


def send(state: Mails) -> dict:
    """Send the mail if a person or another agent says so."""
    mail = state["messages"][-1].tool_calls[0]["args"]
    answer = interrupt({"question": f"Send “{mail['body']}” to {mail['to']}?", "options": ["yes", "no"]})
    sent = [mail["to"]] if answer == "yes" else []
    return {"sent": sent, "next": state["next"] + 1}


def onwards(state: Mails) -> str:
    """The next mail, or the end."""
    return "write" if state["next"] < len(GUESTS) else END


def main() -> None:
    """Begin the thread, or go on with it, until each mail is sent or declined."""
    graph = StateGraph(Mails)
    graph.add_node("write", write)
    graph.add_node("send", send)
    graph.add_edge(START, "write")
    graph.add_edge("write", "send")
    graph.add_conditional_edges("send", onwards, ["write", END])
    with BlackboardSaver() as saver:
        mails = graph.compile(checkpointer=saver)
        thread = sys.argv[1] if len(sys.argv) > 1 else "mails"
        config = {"configurable": {"thread_id": thread}}
        session = saver.session_name(thread)
        print(f"Answer in the page, at /ui/#/sessions/{quote(session)}/timeline, or: blackboard answer {session}/1 yes")
        if not mails.get_state(config).created_at:
            mails.invoke({"messages": [HumanMessage("Invite my friends for tea.")], "sent": [], "next": 0}, config)
        resume(mails, config, wait=WAIT_SECONDS, to_end=True)
        print("Sent to:", ", ".join(mails.get_state(config).values["sent"]) or "nobody")


if __name__ == "__main__":
    main()
