#!/usr/bin/env bash
# Varnish 7.1.1: what it may not cache it still fetches whole, for each conditional read and each range.
#
# An answer with `Cache-Control: private, no-cache` is never stored: Varnish notes that ("hit-for-miss") and asks the
# application each time. But it asks as if it filled its cache. The client's If-None-Match and Range do not reach the
# application; Varnish takes the whole body and makes 304 or 206 of it. The client sees nothing wrong. The application
# sends 4 MB for a 304, and a long poll, which is a conditional read that waits for a change, cannot work at all.
#
# Seen: with no VCL but the backend, each request sent twice; what the application got, and what the client.
#   If-None-Match: application got no If-None-Match, sent 4000000 bytes; client got 304, 0 bytes
#   Range: application got no Range, sent 4000000 bytes; client got 206, 10 bytes
# Expected: the headers as the client sent them, at least from the second request on.
#
# `return (pass)` in vcl_recv passes both on; so does a request with Authorization or Cookie, which is passed by default.
# Needs python3, a C compiler (VCL is compiled), and apt with the lists of Debian 12.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
mkdir -p "$at/debs/partial"
apt-get install -qq -y --reinstall --download-only --no-install-recommends -o Debug::NoLocking=1 \
  -o Dir::Cache::archives="$at/debs" varnish=7.1.1-2+deb12u1 >"$at/log" 2>&1 || { cat "$at/log"; exit 1; }
for package in "$at"/debs/*.deb; do dpkg-deb --extract "$package" "$at/root"; done
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
BODY = b"0123456789" * 400_000
got = []


class Handler(BaseHTTPRequestHandler):
    """An application that takes conditions and ranges."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        is_known = self.headers.get("If-None-Match") == '"v1"'
        is_part = self.headers.get("Range") == "bytes=0-9"
        body = b"" if is_known else BODY[:10] if is_part else BODY
        self.send_response(304 if is_known else 206 if is_part else 200)
        self.send_header("ETag", '"v1"')
        self.send_header("Cache-Control", "private, no-cache")
        if is_part:
            self.send_header("Content-Range", f"bytes 0-9/{len(BODY)}")
        if not is_known:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        got.append((dict(self.headers), len(body)))
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        while self.sock.connect_ex(str(at / "socket")):
            assert proxy.poll() is None, (at / "varnish.log").read_text()
            time.sleep(0.1)


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
backend = f'backend document {{ .host = "127.0.0.1"; .port = "{server.server_port}"; }}'
(at / "default.vcl").write_text(f"vcl 4.1;\n{backend}\n")
command = [at / "root/usr/sbin/varnishd", "-F", "-f", at / "default.vcl", "-a", at / "socket", "-n", at / "work"]
log = (at / "varnish.log").open("w")
proxy = subprocess.Popen([*command, "-j", "none", "-s", "malloc,64m"], stdout=log, stderr=log)
try:
    for name, value in (("If-None-Match", '"v1"'), ("Range", "bytes=0-9")):
        for _ in range(2):
            connection = Connection("document")
            connection.request("GET", "/", headers={name: value})
            answer = connection.getresponse()
            size = len(answer.read())
        headers, sent = got[-1]
        print(f"{name}: application got {headers.get(name, f'no {name}')}, sent {sent} bytes;", end=" ")
        print(f"client got {answer.status}, {size} bytes")
finally:
    proxy.terminate()
    proxy.wait()
PYTHON
libraries=$(find "$at/root/usr/lib" -maxdepth 1 -name '*-linux-gnu*')
LD_LIBRARY_PATH="$libraries" python3 "$at/document.py" "$at" >"$at/seen"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
If-None-Match: application got no If-None-Match, sent 4000000 bytes; client got 304, 0 bytes
Range: application got no Range, sent 4000000 bytes; client got 206, 10 bytes
SEEN
