"""Requests by httpx, requests and curl, as a script would use them.

    target/venv-tools/bin/python tests/clients/python.py http://127.0.0.1:8733
"""

import json
import subprocess
import sys
import threading
from urllib.parse import quote

import httpx
import requests

SERVER = sys.argv[1]


def check(client, name):
    """Lists, state paths, and asking and waiting through the methods that httpx and requests share."""
    board = f"{SERVER}/v1/sessions/clients-{name}"

    def items(query):
        return [entry["item"] for entry in client.get(f"{board}/trajectories", params=query).json()["entries"]]

    client.post(f"{board}/trajectories", json=[{"step": 1, "cost": 0.5, "a,b": 1}, {"step": 2}, {"step": 3}])
    both = [{"step": 1, "cost": 0.5}, {"step": 2}]
    assert items({"keys": "step,cost", "steps": "1,2"}) == both
    assert items({"keys": ["step", "cost"], "steps": [1, 2]}) == both
    assert items({"keys": json.dumps(["a,b"]), "steps": 1}) == [{"a,b": 1}]
    assert items({"keys": "[]", "steps": 1}) == [{}]

    assert client.put(f"{board}/state/{quote('tasks/t1', safe='')}", json=1).status_code == 201
    assert client.get(f"{board}/state").json() == {"tasks": {"t1": 1}}

    asked = client.post(f"{board}/questions", json={"question": "Which printer?"})
    place = SERVER + asked.headers["location"]
    assert client.get(place).headers["etag"] == asked.headers["etag"]
    answering = threading.Timer(0.2, lambda: requests.put(f"{place}/answer", json={"answer": "floor 3"}, timeout=30))
    answering.start()
    answered = client.get(place, params={"wait": "30s", "until": "answered"}, timeout=60)
    assert answered.json()["item"]["answer"] == "floor 3", answered.text
    # The same with the tag that the question was answered with.
    changed = client.get(place, params={"wait": "30s"}, headers={"If-None-Match": asked.headers["etag"]}, timeout=60)
    assert changed.json()["item"]["answer"] == "floor 3", changed.text
    answering.join()

    etag = client.post(f"{board}/requests", json={}).json()["etag"]
    for _ in range(3):
        appended = client.post(f"{board}/requests", json={}, headers={"If-Match": etag})
        assert appended.status_code == 201, appended.text
        etag = appended.json()["etag"]
    print(f"{name}: lists, state paths, asking and waiting, tags")


def check_curl():
    """The list of a query that curl encodes, and one that it does not."""

    def curl(*arguments):
        output = subprocess.run(("curl", "-sS", *arguments), check=True, capture_output=True).stdout
        return [entry["item"] for entry in json.loads(output)["entries"]]

    steps = f"{SERVER}/v1/sessions/clients-httpx/trajectories"
    both = [{"step": 1, "cost": 0.5}, {"step": 2}]
    assert curl(f"{steps}?keys=step,cost&steps=1,2") == both
    assert curl("--get", steps, "--data-urlencode", "keys=step,cost", "--data-urlencode", "steps=1,2") == both
    print("curl: lists")


with httpx.Client() as httpx_client, requests.Session() as requests_client:
    check(httpx_client, "httpx")
    check(requests_client, "requests")
check_curl()
