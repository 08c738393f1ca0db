"""Servers of a rehearsal, as processes or as units of systemd, and the session that it posts to."""

import json
import pathlib
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request

SESSION = "rehearsal"
ANSWER_SECONDS_MAX = 120


def free_address() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"127.0.0.1:{listener.getsockname()[1]}"


def answered(request: urllib.request.Request) -> bytes:
    """The answer of a server that may still be starting."""
    deadline = time.monotonic() + ANSWER_SECONDS_MAX
    while True:
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_SECONDS_MAX) as answer:
                return answer.read()
        except urllib.error.HTTPError as error:
            raise RuntimeError(f"{error.status}: {error.read().decode()}") from error
        except (urllib.error.URLError, ConnectionError):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.02)


class Board:
    """A session, whose requests are read and written."""

    def __init__(self, url: str, token: str = "") -> None:
        self.url = f"{url}/v1/sessions/{SESSION}/requests"
        self.headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})

    def post(self, text: str) -> None:
        body = json.dumps({"request": text}).encode()
        answered(urllib.request.Request(self.url, body, self.headers))

    def has(self, text: str) -> None:
        found = answered(urllib.request.Request(self.url, headers=self.headers)).decode()
        if text not in found:
            raise RuntimeError(f"{text!r} was posted, and the board has {found}")


class Process:
    """A server as a user starts it; SIGTERM ends it with exit code 0."""

    def __init__(self, command: pathlib.Path, data: pathlib.Path) -> None:
        address = free_address()
        self.url = f"http://{address}"
        self.log = data.with_suffix(".log")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [command, "serve", "--data", data, "--listen", address],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(ANSWER_SECONDS_MAX)
        if kind is None and code != 0:
            raise RuntimeError(f"the server ended with {code}: {self.log.read_text()[-2000:]}")


class Unit:
    """A service of a Debian, enabled and started; with a command a passing one of that name."""

    def __init__(self, system, name: str, command: str | None = None) -> None:
        address = free_address()
        self.url = f"http://{address}"
        self.system, self.name = system, name
        setting = f"BLACKBOARD_LISTEN={address}"
        if command:
            system.run("systemd-run", "--quiet", f"--unit={name}", f"--setenv={setting}", "--", *command.split())
            return
        settings = f"/etc/systemd/system/{name}.service.d"
        system.run("mkdir", "-p", settings)
        system.run("sh", "-c", f"printf '[Service]\\nEnvironment={setting}\\n' >{settings}/listen.conf")
        system.run("systemctl", "daemon-reload")
        system.run("systemctl", "enable", "--now", name)
        # It has a token as soon as it answers.
        answered(urllib.request.Request(f"{self.url}/readyz"))

    def process(self) -> str:
        return self.system.run("systemctl", "show", "--property=MainPID", "--value", self.name).strip()

    def __enter__(self) -> "Unit":
        return self

    def __exit__(self, *_: object) -> None:
        self.system.ask("systemctl", "stop", self.name)
