"""Client by openapi-python-client: a module for each operation, which returns the problem as an object of its own."""

from blackboard_client import Client
from blackboard_client.api.events import follow_session
from blackboard_client.api.questions import answer_question, append_to_questions, get_question
from blackboard_client.api.state import get_state, put_state
from blackboard_client.api.trajectories import append_to_trajectories, get_trajectories
from blackboard_client.models import NewAnswerBody
from job import ITEMS, PATH, SERVER, follow, report

SESSION = "generated-openapi-python-client"

with Client(base_url=SERVER) as client:
    one = append_to_trajectories.sync(SESSION, client=client, body=ITEMS[0])
    many = append_to_trajectories.sync(SESSION, client=client, body=[ITEMS[1], "three"])
    page = get_trajectories.sync(SESSION, client=client)

    put_state.sync(SESSION, PATH, client=client, body={"pages": 1})
    tag = get_state.sync_detailed(SESSION, PATH, client=client).headers["Blackboard-ETag"]
    put_state.sync(SESSION, PATH, client=client, body={"pages": 2}, if_match=tag)
    late = put_state.sync_detailed(SESSION, PATH, client=client, body={"pages": 3}, if_match=tag)

    asked = append_to_questions.sync(SESSION, client=client, body={"question": "Which printer?"})
    seq = asked.entries[0].seq
    answer_question.sync(SESSION, seq, client=client, body=NewAnswerBody(answer="The one on floor 3"))
    question = get_question.sync(SESSION, seq, client=client)

    # Without this header the answer is a stream, which ends only with the connection.
    polling = client.with_headers({"Accept": "application/json"})

    def commits(after):
        page = follow_session.sync(SESSION, client=polling, after=after, wait="10s")
        return page.events, page.next_, page.more

    report(
        "openapi-python-client",
        [entry.seq for entry in one.entries + many.entries],
        [entry.item.to_dict() for entry in page.entries],
        (late.status_code, late.parsed.code),
        get_state.sync(SESSION, PATH, client=client),
        question.item.to_dict()["answer"],
        follow(commits),
    )
