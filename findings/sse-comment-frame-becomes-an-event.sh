#!/usr/bin/env bash
# httpx-sse 0.4.3 (Python) and fetch-event-source 2.0.1 (npm): a comment with a blank line behind it becomes an event.
#
# Servers keep a quiet stream of events open by comments, mostly written as `: ping` and a blank line. By the HTML standard
# a blank line after no data dispatches nothing. In httpx-sse the blank line dispatches as soon as any event had an `id:`,
# since the id is kept, and in fetch-event-source always. The same comment as one line, without the blank one, is passed
# over by both, and needs nothing else: lines that begin with a colon end themselves.
#
# Seen: an event with an id, a comment, an event; each reader shows what it was given.
#   httpx-sse, comment and blank line: one | | two
#   httpx-sse, comment line alone: one | two
#   fetch-event-source, comment and blank line: one | | two
#   fetch-event-source, comment line alone: one | two
# Expected: one | two in all four.
#
# A program that parses each event's data as JSON ends at the first quiet moment. Needs python3 with venv, node 20, npm,
# and their registries.
set -euo pipefail
at=$(mktemp -d)
trap 'kill ${server:+"$server"} 2>/dev/null || true; rm -rf "$at"' EXIT
cd "$at"
python3 -m venv venv
venv/bin/pip install --quiet --disable-pip-version-check httpx==0.28.1 httpx-sse==0.4.3
npm init --yes >npm.log 2>&1
npm install --no-audit --no-fund --ignore-scripts @microsoft/fetch-event-source@2.0.1 >npm.log 2>&1
cat >server.mjs <<'NODE'
import { createServer } from "node:http";

const comments = { "/frame": ": ping\n\n", "/line": ": ping\n" };
const server = createServer((request, response) => {
  response.setHeader("Content-Type", "text/event-stream");
  response.end(`id: 1\ndata: one\n\n${comments[request.url]}id: 2\ndata: two\n\n`);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
NODE
cat >reader.py <<'PYTHON'
import sys

import httpx
from httpx_sse import connect_sse

for path, told in (("frame", "comment and blank line"), ("line", "comment line alone")):
    with httpx.Client() as client, connect_sse(client, "GET", f"http://127.0.0.1:{sys.argv[1]}/{path}") as source:
        print(f"httpx-sse, {told}:", " | ".join(event.data for event in source.iter_sse()))
PYTHON
cat >reader.mjs <<'NODE'
// It asks the page whether it is visible.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const { fetchEventSource } = await import("@microsoft/fetch-event-source");

for (const [path, told] of Object.entries({ frame: "comment and blank line", line: "comment line alone" })) {
  const data = [];
  const url = `http://127.0.0.1:${process.argv[2]}/${path}`;
  await fetchEventSource(url, { openWhenHidden: true, onmessage: (event) => data.push(event.data) });
  console.log(`fetch-event-source, ${told}:`, data.join(" | "));
}
NODE
node server.mjs >port &
server=$!
until [ -s port ]; do sleep 0.1; done
{
  venv/bin/python reader.py "$(cat port)"
  node reader.mjs "$(cat port)"
} | sed 's/|  |/| |/' >seen
cat seen
diff seen - <<'SEEN'
httpx-sse, comment and blank line: one | | two
httpx-sse, comment line alone: one | two
fetch-event-source, comment and blank line: one | | two
fetch-event-source, comment line alone: one | two
SEEN
