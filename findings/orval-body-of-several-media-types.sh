#!/usr/bin/env bash
# orval 8.38.0 (fetch): a JSON body that may also have another media type is sent as text, or as "[object Object]".
#
# For a body of one media type the function sets `Content-Type`. For one of several it sets none, though it makes JSON of
# the body: `fetch` then says `text/plain;charset=UTF-8`, and a server that looks at the type rejects it. If one of the
# types is an image, the value is passed to `fetch` as it is, JSON or not, which does not compile either.
#
# Seen: `Content-Type` and body of a call with {"text":"a"}, by the media types of the body.
#   json: application/json, {"text":"a"}
#   json and lines: text/plain;charset=UTF-8, {"text":"a"}
#   json and png: text/plain;charset=UTF-8, [object Object]
#   errors of tsc 5.9.3: 1
# Expected: `application/json` and the JSON each time, since the value is of the JSON's type.
#
# `override.contentType.include` of its configuration leaves one type of several, which then works.
# Needs Node.js 20 or later with npm, and the registry of npm.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
npm install --silent --no-audit --no-fund --ignore-scripts orval@8.38.0 typescript@5.9.3 esbuild@0.28.2 >log 2>&1
cat >make.mjs <<'NODE'
import { writeFileSync } from "node:fs";

const note = { type: "object", required: ["text"], properties: { text: { type: "string" } } };
const json = { "application/json": { schema: { $ref: "#/components/schemas/Note" } } };
const bodies = {
  json,
  lines: { ...json, "application/x-ndjson": { schema: { type: "string" } } },
  png: { ...json, "image/png": {} },
};
const operation = (operationId, content) => ({
  post: { operationId, requestBody: { required: true, content }, responses: { 204: { description: "Added" } } },
});
const paths = Object.entries(bodies).map(([name, content]) => [`/${name}`, operation(name, content)]);
writeFileSync("openapi.json", JSON.stringify({
  openapi: "3.1.0",
  info: { title: "Notes", version: "1" },
  paths: Object.fromEntries(paths),
  components: { schemas: { Note: note } },
}));
NODE
node make.mjs
cat >orval.config.mjs <<'NODE'
export default { notes: { input: "openapi.json", output: { target: "notes.ts", client: "fetch" } } };
NODE
node_modules/.bin/orval --config orval.config.mjs >>log 2>&1
cat >calls.ts <<'NODE'
import * as notes from "./notes";

globalThis.fetch = async (url, init) => {
  const request = new Request(new URL(String(url), "http://localhost"), init);
  console.log(`${request.headers.get("Content-Type")}, ${await request.text()}`);
  return new Response(null, { status: 204 });
};
(async () => {
  for (const add of [notes.json, notes.lines, notes.png]) await add({ text: "a" });
})();
NODE
errors=$(node_modules/.bin/tsc --noEmit --strict --target es2022 --module esnext --moduleResolution bundler --lib es2022,dom,dom.iterable \
  notes.ts | grep -c 'error TS' || true)
node_modules/.bin/esbuild calls.ts --bundle --platform=node --log-level=warning >calls.cjs
{
  node calls.cjs | paste -d ' ' <(printf '%s\n' "json:" "json and lines:" "json and png:") -
  echo "errors of tsc 5.9.3: $errors"
} >seen
cat seen
diff seen - <<'SEEN'
json: application/json, {"text":"a"}
json and lines: text/plain;charset=UTF-8, {"text":"a"}
json and png: text/plain;charset=UTF-8, [object Object]
errors of tsc 5.9.3: 1
SEEN
