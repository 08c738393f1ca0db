#!/usr/bin/env bash
# @google/gemini-cli 0.61.0: ended by SIGTERM, `gemini -p` exits with 0 and leaves its command running.
#
# A supervisor that stops a program with SIGTERM reads from its exit code whether it did its work: by convention 143, or an
# end by the signal. `gemini -p` exits with 0 and prints nothing, like a run whose model had nothing to say. A command that
# its model runs has a session of its own, so a signal to the process group of `gemini` does not reach it either.
#
# Seen: SIGTERM to the process group while the model's command runs.
#   exit code: 0
#   standard output: 0 bytes
#   the command: still runs
# Expected: another exit code than 0, and no command left. Claude Code 2.1.332 exits with 143 and ends its command.
#
# Needs node 20, npm and setsid of util-linux.
set -euo pipefail
at=$(mktemp -d)
children=()
trap 'kill "${children[@]}" 2>/dev/null || true; rm -rf "$at"' EXIT
cd "$at"
npm install --no-audit --no-fund --ignore-scripts --prefix "$at/npm" @google/gemini-cli@0.61.0 >"$at/installed" 2>&1
mkdir -p home/.gemini work
cat >home/.gemini/settings.json <<'JSON'
{
  "security": { "auth": { "selectedType": "gemini-api-key" } },
  "general": { "enableAutoUpdate": false },
  "privacy": { "usageStatisticsEnabled": false }
}
JSON
# A model that answers each prompt with one call of the shell.
cat >model.mjs <<'NODE'
import { createServer } from "node:http";
const args = { command: "echo $$ > started; exec tail -f /dev/null" };
const parts = [{ functionCall: { id: "1", name: "run_shell_command", args } }];
const usageMetadata = { promptTokenCount: 1, candidatesTokenCount: 1, totalTokenCount: 2 };
const candidates = [{ content: { role: "model", parts }, finishReason: "STOP", index: 0 }];
const server = createServer((request, response) => {
  request.resume();
  response.setHeader("Content-Type", "text/event-stream");
  response.end(`data: ${JSON.stringify({ candidates, usageMetadata })}\r\n\r\n`);
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
NODE
node model.mjs >port &
children+=($!)
until [ -s port ]; do sleep 0.1; done
cd work
env -i PATH="$PATH" HOME="$at/home" TERM=dumb GEMINI_API_KEY=scripted GEMINI_MODEL=gemini-2.5-pro \
  GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat ../port)" \
  setsid "$at/npm/node_modules/.bin/gemini" --skip-trust --approval-mode yolo -p 'Wait.' </dev/null >../output 2>../errors &
gemini=$!
for _ in $(seq 1200); do
  [ -s started ] && break
  sleep 0.1
done
[ -s started ] || {
  cat ../errors >&2
  exit 1
}
command=$(cat started)
children+=("$command")
kill -TERM -- "-$gemini"
code=0
wait "$gemini" || code=$?
sleep 2
{
  echo "exit code: $code"
  echo "standard output: $(wc -c <../output) bytes"
  if kill -0 "$command" 2>/dev/null; then echo "the command: still runs"; else echo "the command: has ended"; fi
} >../seen
cat ../seen
diff ../seen - <<'SEEN'
exit code: 0
standard output: 0 bytes
the command: still runs
SEEN
echo "as described"
