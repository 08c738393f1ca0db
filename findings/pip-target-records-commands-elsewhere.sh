#!/usr/bin/env bash
# pip 26.3: with --target, a package's record names its command at a path that does not exist.
#
# `pip install --target` installs into a temporary prefix, and moves what it finds there. The record in the folder
# .dist-info is as it was before: it has the command two folders above, while it stands in bin/ beside the packages. So
# importlib.metadata names a file outside of the folder, which may be missing or another program's. uv writes the real place.
#
# Seen: the command of tabulate 0.9.0, as its record names it, and whether it is there.
#   pip: ../../bin/tabulate False
#   uv: bin/tabulate True
# Expected: both as uv.
#
# Look for a command beside the package when the recorded place is empty. Needs python3 with venv, and PyPI.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check pip==26.3 uv==0.13.9
"$at/venv/bin/pip" install --quiet --disable-pip-version-check --target "$at/by/pip/packages" tabulate==0.9.0
"$at/venv/bin/uv" pip install --quiet --python "$at/venv/bin/python" --target "$at/by/uv/packages" tabulate==0.9.0
cat >"$at/where.py" <<'PYTHON'
import importlib.metadata
import sys

(found,) = importlib.metadata.distributions(name="tabulate", path=[sys.argv[1]])
(command,) = [file for file in found.files if file.parent.name == "bin"]
print(command, command.locate().is_file())
PYTHON
for tool in pip uv; do
    echo "$tool: $("$at/venv/bin/python" "$at/where.py" "$at/by/$tool/packages")"
done >"$at/seen"
diff - "$at/seen" <<'SEEN'
pip: ../../bin/tabulate False
uv: bin/tabulate True
SEEN
echo "as described"
