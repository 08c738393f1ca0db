#!/usr/bin/env bash
# @google/gemini-cli 0.61.0: with JSON the exit code of a failed `gemini -p` is the HTTP status, modulo 256.
#
# If the model's API rejects a call, `gemini -p` exits with 1. With `--output-format json` it exits with the status of
# the API's answer, of which the system keeps the last eight bits. So a supervisor sees a number that depends on the error
# and stands in no list: 144 for 400, 147 for 403.
#
# Seen: an API that answers 400, then 403, to every call.
#   400 as text: exit code 1
#   400 as JSON: exit code 144
#   403 as JSON: exit code 147
# Expected: one code for errors of the API, whatever the format. Needs node 20 and npm.
set -euo pipefail
at=$(mktemp -d)
server=""
trap 'kill $server 2>/dev/null || true; rm -rf "$at"' EXIT
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
# An API that rejects each call, with the status that its path begins with.
cat >model.mjs <<'NODE'
import { createServer } from "node:http";
const server = createServer((request, response) => {
  request.resume();
  const code = Number(request.url.split("/")[1]);
  response.writeHead(code, { "Content-Type": "application/json" });
  response.end(JSON.stringify({ error: { code, message: "out of credit", status: "FAILED_PRECONDITION" } }));
});
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
NODE
node model.mjs >port &
server=$!
until [ -s port ]; do sleep 0.1; done
cd work

# Prints the exit code of a run that gets this status, with this format.
code() {
  local code=0
  env -i PATH="$PATH" HOME="$at/home" TERM=dumb GEMINI_API_KEY=scripted GEMINI_MODEL=gemini-2.5-pro \
    GOOGLE_GEMINI_BASE_URL="http://127.0.0.1:$(cat ../port)/$1" \
    timeout 120 "$at/npm/node_modules/.bin/gemini" --skip-trust --output-format "$2" -p 'Hello.' \
    </dev/null >../output 2>../errors || code=$?
  echo "exit code $code"
}
{
  echo "400 as text: $(code 400 text)"
  echo "400 as JSON: $(code 400 json)"
  echo "403 as JSON: $(code 403 json)"
} >../seen
cat ../seen
diff ../seen - <<'SEEN'
400 as text: exit code 1
400 as JSON: exit code 144
403 as JSON: exit code 147
SEEN
echo "as described"
