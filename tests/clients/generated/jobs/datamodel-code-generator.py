"""Models by datamodel-code-generator: requests are made by httpx, bodies are written and answers read by the models."""

import blackboard_models as models
import httpx
from job import ITEMS, SERVER, follow, report

with httpx.Client(base_url=f"{SERVER}/v1/sessions/generated-datamodel-code-generator") as client:

    def append(log, body):
        items = models.ItemsBody(body).model_dump(mode="json")
        return models.WrittenBody.model_validate_json(client.post(log, json=items).content).entries

    one = append("trajectories", ITEMS[0])
    many = append("trajectories", [ITEMS[1], "three"])
    page = models.EntryPage.model_validate_json(client.get("trajectories").content)

    client.put("state/tasks/counts", json={"pages": 1})
    tag = client.get("state/tasks/counts").headers["Blackboard-ETag"]
    client.put("state/tasks/counts", json={"pages": 2}, headers={"If-Match": tag})
    late = client.put("state/tasks/counts", json={"pages": 3}, headers={"If-Match": tag})

    seq = append("questions", {"question": "Which printer?"})[0].seq
    answer = models.NewAnswerBody(answer="The one on floor 3")
    client.put(f"questions/{seq}/answer", json=answer.model_dump(mode="json", exclude_unset=True))
    question = models.EntryBody.model_validate_json(client.get(f"questions/{seq}").content)

    def commits(after):
        # Without this header the answer is a stream, which ends only with the connection.
        headers = {"Accept": "application/json"}
        answer = client.get("events", params={"after": after, "wait": "10s"}, headers=headers, timeout=30)
        page = models.EventPage.model_validate_json(answer.content)
        return page.events, page.next, page.more

    report(
        "datamodel-code-generator",
        [entry.seq for entry in one + many],
        [entry.item for entry in page.entries],
        (late.status_code, models.ProblemBody.model_validate_json(late.content).code.value),
        client.get("state/tasks/counts").json(),
        question.item["answer"],
        follow(commits),
    )
