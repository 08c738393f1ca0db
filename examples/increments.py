#!/usr/bin/env python3
"""Concurrent increments of one number by eight clients, without a lost update.

Needs only Python 3 and a running server:

    python3 examples/increments.py [http://127.0.0.1:8733]

Where the server asks for a token it is taken from BLACKBOARD_TOKEN.
"""

import json
import os
import sys
import threading
import urllib.error
import urllib.request
import uuid

CLIENTS = 8


def call(method, url, body=None, tag=None):
    """The status, the tag, and the JSON of an answer."""
    request = urllib.request.Request(url, method=method)
    if "BLACKBOARD_TOKEN" in os.environ:
        request.add_header("Authorization", "Bearer " + os.environ["BLACKBOARD_TOKEN"])
    if body is not None:
        request.add_header("Content-Type", "application/json")
    if tag is not None:
        request.add_header("If-Match", tag)
    data = None if body is None else json.dumps(body).encode()
    try:
        with urllib.request.urlopen(request, data) as answer:
            return answer.status, answer.headers["ETag"], json.load(answer)
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.headers["ETag"], json.load(refusal)


def at_once(work):
    """Lets all clients do this work at once; what each of them came to."""
    results = [None] * CLIENTS

    def run(client):
        results[client] = work()

    threads = [threading.Thread(target=run, args=(client,)) for client in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if None in results:
        sys.exit("a client failed")
    return results


def by_condition(counter, times):
    """Reads, adds one, writes if nobody wrote meanwhile, else reads again; how often it had to."""
    again = 0
    for _ in range(times):
        while True:
            _, tag, value = call("GET", counter)
            status, _, answer = call("PUT", counter, value + 1, tag)
            if status == 200:
                break
            if status != 412:
                sys.exit(f"refused: {answer}")
            again += 1
    return again


def by_add(counter, times):
    """Lets the server add; how many of these were answered with a sum."""
    answers = [call("PATCH", counter, {"add": 1}) for _ in range(times)]
    return sum(status in (200, 201) for status, _, _ in answers)


def main():
    server = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8733"
    state = f"{server}/v1/sessions/increments-{uuid.uuid4()}/state"
    checked, added = f"{state}/checked", f"{state}/added"

    call("PUT", checked, 0)
    again = sum(at_once(lambda: by_condition(checked, 25)))
    total = call("GET", checked)[2]
    print(f"If-Match: {CLIENTS} clients x 25 = {total}, after {again} refusals and new tries")

    answered = sum(at_once(lambda: by_add(added, 50)))
    sums = call("GET", added)[2]
    print(f"add:      {CLIENTS} clients x 50 = {sums}, {answered} answered, none tried again")
    return 0 if (total, sums, answered) == (200, 400, 400) else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except urllib.error.URLError as error:
        sys.exit(f"cannot reach the server: {error.reason}; start it with: cargo run --release -- serve")
