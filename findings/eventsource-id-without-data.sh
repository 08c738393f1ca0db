#!/usr/bin/env bash
# eventsource 4.1.1 and event-source-polyfill 1.0.31 (npm): the id of a frame without data is forgotten.
#
# A server with nothing to say to a filtered reader can send a frame that has only `id:`. No event is dispatched for it,
# but by the HTML standard (server-sent events, "dispatch the event") the last event ID is set first, and a reader that
# reconnects resumes there. Chromium 156's own EventSource does so. These two resume at the last event that had data.
#
# Seen: two frames, an event with the id 5 and an id 9 alone; then the server closes. The reconnect says
#   eventsource: Last-Event-ID 5
#   event-source-polyfill: lastEventId 5, as a parameter of the query
#   fetch-event-source: Last-Event-ID 9
# Expected: 9 of all.
#
# A stream that was quiet for a day is thus resumed a day back: what was read already is sent again if it matches, or
# the history there is gone. Nor can a program help itself, since it sees no event; eventsource-parser 3.1.1, below
# `eventsource`, reports no id either. Needs node 20 and npm.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
npm init --yes >"$at/npm" 2>&1
npm install --no-audit --no-fund --ignore-scripts eventsource@4.1.1 eventsource-parser@3.1.1 event-source-polyfill@1.0.31 \
  @microsoft/fetch-event-source@2.0.1 >"$at/npm" 2>&1
cat >readers.mjs <<'NODE'
import { createServer } from "node:http";
import { EventSource } from "eventsource";
import polyfill from "event-source-polyfill";

// fetch-event-source asks the page whether it is visible.
globalThis.window = globalThis;
globalThis.document = { hidden: false, addEventListener() {}, removeEventListener() {} };
const { fetchEventSource } = await import("@microsoft/fetch-event-source");

/** Serves two frames and closes; resolves with what the second request says of its place. */
function reconnect(open) {
  return new Promise((resolve) => {
    let count = 0;
    const server = createServer((request, response) => {
      response.setHeader("Content-Type", "text/event-stream");
      if ((count += 1) === 1) return response.end("retry: 100\n\nid: 5\ndata: one\n\nid: 9\n\n");
      const { searchParams } = new URL(request.url, "http://localhost");
      const header = request.headers["last-event-id"];
      resolve(header === undefined ? `lastEventId ${searchParams.get("lastEventId")}` : `Last-Event-ID ${header}`);
      return response.flushHeaders();
    });
    server.listen(0, "127.0.0.1", () => open(`http://127.0.0.1:${server.address().port}/`));
  });
}

const again = () => {
  throw new Error("closed, so again");
};
const readers = {
  eventsource: (url) => new EventSource(url),
  "event-source-polyfill": (url) => new polyfill.EventSourcePolyfill(url),
  "fetch-event-source": (url) => fetchEventSource(url, { openWhenHidden: true, onclose: again }),
};
for (const [name, open] of Object.entries(readers)) console.log(`${name}: ${await reconnect(open)}`);
process.exit(0);
NODE
timeout 60 node readers.mjs >seen 2>errors || {
  cat errors >&2
  exit 1
}
cat seen
diff seen - <<'SEEN'
eventsource: Last-Event-ID 5
event-source-polyfill: lastEventId 5
fetch-event-source: Last-Event-ID 9
SEEN
