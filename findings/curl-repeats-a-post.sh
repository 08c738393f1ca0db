#!/usr/bin/env bash
# libcurl 8.23.0 (pycurl 7.49.0): a POST whose kept connection breaks before the answer is sent again, without being asked.
#
# A server reads a POST whole, carries it out, and its connection ends before the answer. On a fresh connection libcurl
# reports that as an error. On a connection that it used before it opens another and sends the POST once more, even
# though no option asks for a repeat. The caller sees one success.
#
# Seen: two POSTs over one handle; the server answers the first, and carries out the second without an answer.
#   fresh: error 52, carried out 1
#   kept: status 200, carried out 2
# Expected by one who knows that a POST is not idempotent: error 52 both times.
#
# So what a POST does must be safe to repeat (an `Idempotency-Key`), or the connection must not be kept
# (CURLOPT_FRESH_CONNECT). Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check pycurl==7.49.0
"$at/venv/bin/python" - <<'PYTHON' >"$at/seen"
import socket
import threading

import pycurl


class Server:
    """Answers the requests of a connection that it knows as kept, but for the named one, which it only carries out."""

    def __init__(self, unanswered):
        self.unanswered, self.bodies = unanswered, []
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        while True:
            connection, _ = self.socket.accept()
            threading.Thread(target=self.answer, args=(connection,), daemon=True).start()

    def answer(self, connection):
        with connection, connection.makefile("rb") as received:
            while body := self.request(received):
                self.bodies.append(body)
                if body == self.unanswered and self.bodies.count(body) == 1:
                    return
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    def request(self, received):
        length = 0
        while (line := received.readline()) not in (b"", b"\r\n"):
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return received.read(length)


def post(handle, server, body):
    handle.setopt(pycurl.URL, f"http://127.0.0.1:{server.port}/")
    handle.setopt(pycurl.POSTFIELDS, body)
    try:
        handle.perform()
        return f"status {handle.getinfo(pycurl.RESPONSE_CODE)}"
    except pycurl.error as error:
        return f"error {error.args[0]}"


for name, bodies in (("fresh", ["second"]), ("kept", ["first", "second"])):
    server, handle = Server(b"second"), pycurl.Curl()
    *_, seen = [post(handle, server, body) for body in bodies]
    print(f"{name}: {seen}, carried out {server.bodies.count(b'second')}")
PYTHON
diff - "$at/seen" <<'SEEN'
fresh: error 52, carried out 1
kept: status 200, carried out 2
SEEN
echo "as described"
