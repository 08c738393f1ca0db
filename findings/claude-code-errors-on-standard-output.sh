#!/usr/bin/env bash
# Claude Code 2.1.332: `claude -p` prints an error of the model's API on standard output, where the answer stands.
#
# A program that runs `claude -p` reads the answer from standard output, and why there is none from standard error. If the
# API rejects a call, the message stands where the answer would, standard error is empty, and only the exit code differs.
# So a supervisor that keeps standard error as the reason of a failure keeps nothing.
#
# Seen: an API that answers 400 to every call.
#   exit code: 1
#   standard output: API Error: 400 out of credit
#   standard error: 0 bytes
# Expected: the message on standard error, as Codex 0.171.0 and Gemini CLI 0.61.0 have it. Needs node 20 and npm, on
# Linux x64.
set -euo pipefail
at=$(mktemp -d)
server=""
trap 'kill $server 2>/dev/null || true; rm -rf "$at"' EXIT
cd "$at"
npm install --no-audit --no-fund --ignore-scripts --prefix "$at/npm" \
  @anthropic-ai/claude-code-linux-x64@2.1.332 >"$at/installed" 2>&1
mkdir -p home work
cat >model.mjs <<'NODE'
import { createServer } from "node:http";
const error = { type: "invalid_request_error", message: "out of credit" };
const server = createServer((request, response) => {
  request.resume();
  response.writeHead(400, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ type: "error", error }));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
NODE
node model.mjs >port &
server=$!
until [ -s port ]; do sleep 0.1; done
cd work
code=0
env -i PATH="$PATH" HOME="$at/home" ANTHROPIC_API_KEY=scripted ANTHROPIC_BASE_URL="http://127.0.0.1:$(cat ../port)" \
  CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 DISABLE_TELEMETRY=1 \
  timeout 120 "$at/npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude" -p 'Hello.' \
  </dev/null >../output 2>../errors || code=$?
{
  echo "exit code: $code"
  echo "standard output: $(cat ../output)"
  echo "standard error: $(wc -c <../errors) bytes"
} >../seen
cat ../seen
diff ../seen - <<'SEEN'
exit code: 1
standard output: API Error: 400 out of credit
standard error: 0 bytes
SEEN
echo "as described"
