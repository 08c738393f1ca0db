#!/usr/bin/env python3
"""OpenAPI document, fuzzed by schemathesis against a new server in single requests and in sequences.

    tests/openapi_fuzz.py [--server PATH] [--minutes N] [--seed N]

Run by a Python that has the packages of tests/requirements.txt (tests/run makes one: target/venv-tools/bin/python). Every run
asks the same; with --minutes it asks at random, for so long, from a seed that is printed. No answer may be 5xx or outside
the document; the server must end as asked, with a sound store. Server-sent events are left out: they do not end.
"""

import argparse
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path

from board_server import Server

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ROOT / "tests/schemathesis.toml"
WITHOUT = "/(events|ui|mcp)(/|$)"
# Of each session that most requests go to.
GIF = "data:image/gif;base64,R0lGODdhAgADAIEAAMgeCgAAAAAAAAAAACwAAAAAAgADAAAIBgABCBwYEAA7"
BOARD = {
    "questions": [{"question": "Which file?", "answer": "a.xlsx"}, {"question": "Which sheet?"}, {"text": "three"}],
    "requests": [{"request_0": "open it"}, {"request_1": "sum it up"}, {"status": "FAIL"}],
    "trajectories": [{"step": 1, "agent": "HostAgent"}, {"step": 2, "status": "FINISH"}, {"step": 3.0, "key": "k"}],
    "screenshots": [{"metadata": "m", "image_path": "a.gif", "image_str": GIF}, {}, {}],
}
MEMORY = [{"step": 1, "cost": 0.5}, {"step": 2}, {"step": 3}]
STATE = {"tasks": {"t1": {"status": "ready", "n": 1}}, "list": [1]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--server", metavar="PATH", default=ROOT / "target/debug/blackboard", help="the binary (target/debug/blackboard)")
    parser.add_argument("--minutes", type=float, help="ask at random for so long")
    parser.add_argument("--seed", type=int, help="what chance is drawn from")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as home, Server(given.server, log="info") as server:
        fill(server.client())
        asked = subprocess.run(command(given, home, server.address), env=environment(home), check=False)
        failed = [line for line in server.said if '"status":5' in line]
        healthy = server.client().ask("GET", "/healthz")
        print("\n".join([*failed, healthy.body.decode()]))
        ended, checked = server.stop(), server.run("check")
    if asked.returncode or failed or healthy.status != 200 or ended or checked.returncode:
        sys.exit(f"schemathesis ends with {asked.returncode}, the server with {ended}, check with {checked.returncode}: {checked.stdout}")


def fill(client):
    for session in ("alpha", "beta"):
        at = f"/v1/sessions/{session}"
        for method, tail, body in (
            ("PUT", "blackboard", BOARD), ("POST", "agents/HostAgent/memory", MEMORY),
            ("POST", "agents/HostAgent/messages", MEMORY), ("PUT", "state", STATE)
        ):
            answer = client.ask(method, f"{at}/{tail}", body)
            if answer.status not in (200, 201):
                sys.exit(f"{method} {at}/{tail}: {answer.status} {answer.body.decode()}")


def command(given, home, address):
    # Beside this Python, in its environment.
    tool = Path(sys.executable).with_name("schemathesis")
    config, chance = CONFIG, []
    if given.minutes:
        config = Path(home) / "schemathesis.toml"
        config.write_text(CONFIG.read_text().replace("deterministic = true", "deterministic = false"))
        seed = secrets.randbits(32) if given.seed is None else given.seed
        chance = ["--phases", "fuzzing,stateful", "--max-time", str(int(given.minutes * 60)), "--seed", str(seed)]
        print(f"seed {seed}", flush=True)
    url = "http://{}:{}".format(*address)
    asks = ["run", "openapi/openapi.yaml", "--url", url, "--exclude-path-regex", WITHOUT]
    return [tool, "--config-file", config, "--no-color", *asks, *chance]


def environment(home):
    kept = os.path.join(home, "hypothesis")
    return os.environ | {"SCHEMATHESIS_HOOKS": "tests/schemathesis_hooks.py", "HYPOTHESIS_STORAGE_DIRECTORY": kept}


os.chdir(ROOT)
main()
