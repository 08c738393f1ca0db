#!/usr/bin/env bash
# HAProxy 2.6.12: with gzip the end of each server-sent event arrives with the next event.
#
# `compression algo gzip` compresses an event stream if `compression type` names text/event-stream, or if there is no such
# line. Each part of the stream is compressed and sent at once, except its last byte: that is the second newline of the
# empty line, without which a client does not dispatch the event. The byte arrives with the next event, or with the end of
# the stream. `option http-no-delay` does not change it; it ends the 200 ms that each part waits without compression.
#
# Seen: three events at 0, 1 and 2 s, and the end of the stream at 4 s; when the empty line of each arrived.
#   gzip: 1 2 4
#   gzip, and Cache-Control: no-transform: 0 1 2
# Expected: 0 1 2 in both.
#
# So an event after which nothing happens for an hour is seen after an hour. Apache httpd, Caddy and Traefik flush what
# they compress of a stream. Needs python3, and apt with the lists of Debian 12.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
mkdir -p "$at/debs/partial"
apt-get install -qq -y --reinstall --download-only --no-install-recommends -o Debug::NoLocking=1 \
  -o Dir::Cache::archives="$at/debs" haproxy=2.6.12-1+deb12u4 >"$at/log" 2>&1 || { cat "$at/log"; exit 1; }
for package in "$at"/debs/*.deb; do dpkg-deb --extract "$package" "$at/root"; done
cat >"$at/events.py" <<'PYTHON'
import http.client
import socket
import subprocess
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

at = Path(sys.argv[1])


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def part(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", self.path[1:])
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number in range(3):
            self.part(b'id: %d\nevent: step\ndata: {"step":%d}\n\n' % (number, number))
            time.sleep(1)
        time.sleep(1)
        self.part(b"")

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
(at / "haproxy.cfg").write_text(f"""
defaults
    mode http
    timeout connect 5s
    timeout client 50s
    timeout server 50s
listen events
    bind unix@{at}/socket
    option http-no-delay
    compression algo gzip
    compression type text/event-stream
    server events 127.0.0.1:{server.server_port}
""")
proxy = subprocess.Popen([at / "root/usr/sbin/haproxy", "-f", at / "haproxy.cfg"], stderr=subprocess.DEVNULL)


class Connection(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(str(at / "socket"))


try:
    while not (at / "socket").exists():
        time.sleep(0.1)
    for name, control in (("gzip", "no-store"), ("gzip, and Cache-Control: no-transform", "no-transform")):
        connection = Connection("events")
        connection.request("GET", f"/{control}", headers={"Accept-Encoding": "gzip"})
        begin = time.monotonic()
        answer = connection.getresponse()
        unpacked = zlib.decompressobj(31) if answer.headers["Content-Encoding"] == "gzip" else None
        pending, times = b"", []
        while read := answer.read1(65536):
            pending += unpacked.decompress(read) if unpacked else read
            *whole, pending = pending.split(b"\n\n")
            times += [f"{time.monotonic() - begin:.0f}" for _ in whole]
        print(f"{name}: {' '.join(times)}")
finally:
    proxy.terminate()
    proxy.wait()
PYTHON
libraries=$(find "$at/root/usr/lib" -maxdepth 1 -name '*-linux-gnu*')
LD_LIBRARY_PATH="$libraries" python3 "$at/events.py" "$at" >"$at/seen"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
gzip: 1 2 4
gzip, and Cache-Control: no-transform: 0 1 2
SEEN
