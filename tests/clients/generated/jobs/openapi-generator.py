"""Client by openapi-generator (python): a class for each tag, whose methods raise unless the status is 2xx."""

import json

import openapi_client as board
from job import ITEMS, PATH, SERVER, follow, report

SESSION = "generated-openapi-generator"

with board.ApiClient(board.Configuration(host=SERVER)) as client:
    trajectories, questions = board.TrajectoriesApi(client), board.QuestionsApi(client)
    state, events = board.StateApi(client), board.EventsApi(client)

    one = trajectories.append_to_trajectories(SESSION, ITEMS[0])
    many = trajectories.append_to_trajectories(SESSION, [ITEMS[1], "three"])
    page = trajectories.get_trajectories(SESSION)

    state.put_state(SESSION, PATH, {"pages": 1})
    # The names of headers are as the server writes them.
    tag = state.get_state_with_http_info(SESSION, PATH).headers["blackboard-etag"]
    state.put_state(SESSION, PATH, {"pages": 2}, if_match=tag)
    try:
        late = state.put_state(SESSION, PATH, {"pages": 3}, if_match=tag)
    except board.ApiException as refused:
        late = (refused.status, json.loads(refused.body)["code"])

    seq = questions.append_to_questions(SESSION, {"question": "Which printer?"}).entries[0].seq
    questions.answer_question(SESSION, seq, board.NewAnswerBody(answer="The one on floor 3"))
    question = questions.get_question(SESSION, seq)

    def commits(after):
        page = events.follow_session(SESSION, after=after, wait="10s")
        return page.events, page.next, page.more

    report(
        "openapi-generator",
        [entry.seq for entry in one.entries + many.entries],
        [entry.item for entry in page.entries],
        late,
        state.get_state(SESSION, PATH),
        question.item["answer"],
        follow(commits),
    )
