"""Stand-ins for the images of registries, made of programs of this machine.

Debian and Caddy are busybox with the libraries or the program that are needed. Rust is Debian with a `cargo` that
copies the binary under test, so that the Dockerfile runs without a compiler. PostgreSQL is this machine's.
"""

from __future__ import annotations

import glob
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from pathlib import Path

import engine

# What the Dockerfile's compiler is asked for.
CARGO = """#!/bin/sh
[ "$*" = "build --profile dist --locked --bin blackboard" ] || { echo "cargo $*: not what is expected" >&2; exit 1; }
[ -f Cargo.lock ] && [ -d src ] && [ -d crates ] && install -D /opt/blackboard target/dist/blackboard
"""
NOTHING = "#!/bin/sh\n"

# With the variables of the official image that compose.cluster.yaml sets.
ENTRYPOINT = """#!/bin/sh
set -eu
export PATH=@BIN@:$PATH
PGDATA=/var/lib/postgresql/data/here
if [ ! -e "$PGDATA/PG_VERSION" ]; then
    # shellcheck disable=SC2086
    initdb --pgdata "$PGDATA" --username "$POSTGRES_USER" --pwfile "$POSTGRES_PASSWORD_FILE" --auth-local trust \\
        --auth-host scram-sha-256 $POSTGRES_INITDB_ARGS
    pg_ctl --pgdata "$PGDATA" --wait --options "-c listen_addresses=" start
    psql --username "$POSTGRES_USER" --dbname postgres --command "CREATE DATABASE $POSTGRES_DB"
    pg_ctl --pgdata "$PGDATA" --wait stop
    echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
fi
exec postgres -D "$PGDATA" -c listen_addresses='*'
"""


class Tree:
    """The files of an image."""

    def __init__(self, folder: Path):
        self.folder = folder
        for name in ("bin", "etc", "tmp", "run", "root", "var"):
            (folder / name).mkdir(parents=True)
        (folder / "tmp").chmod(0o1777)
        (folder / "etc/passwd").write_text("root:x:0:0::/root:/bin/sh\npostgres:x:999:999::/tmp:/bin/sh\n")
        (folder / "etc/group").write_text("root:x:0:\npostgres:x:999:\n")
        busybox = engine.ROOT / "bin/busybox"
        shutil.copy(busybox, folder / "bin/busybox")
        for name in subprocess.run([busybox, "--list"], check=True, capture_output=True, text=True).stdout.split():
            if name != "busybox":
                (folder / "bin" / name).symlink_to("busybox")

    def write(self, place: str, text: str) -> None:
        """Writes a program."""
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def copy(self, source: Path, place: str) -> None:
        """Copies a file or a folder."""
        path = self.folder / place
        path.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, path, ignore_dangling_symlinks=True)
        else:
            shutil.copy(source, path)

    def add_libraries(self, programs: Iterable[Path]) -> None:
        """Copies the libraries of this machine that programs are linked with."""
        said = subprocess.run(["ldd", *programs], check=True, capture_output=True, text=True).stdout
        for library in sorted(set(re.findall(r"(/\S+\.so\S*) \(", said))):
            self.copy(Path(library), library.lstrip("/"))

    def load(self, house: engine.House, name: str, **changes: object) -> None:
        """Makes an image of it."""
        texts = {word: json.dumps(value) if isinstance(value, list) else value for word, value in changes.items()}
        options = [f"--change '{word} {text}'" for word, text in texts.items()]
        packed = subprocess.Popen(["tar", "-C", self.folder, "-c", "."], stdout=subprocess.PIPE)
        subprocess.run(
            house.command(f"docker import {' '.join(options)} - {name} >/dev/null"), stdin=packed.stdout, check=True
        )
        if packed.wait() != 0:
            raise engine.Broken(f"{name} could not be packed")


def named() -> dict[str, str]:
    """The images that the Dockerfile and the compose files name, by their first word."""
    texts = [path.read_text() for path in sorted((engine.REPOSITORY / "docker").glob("compose*.yaml"))]
    found = re.findall(r"^FROM (\S+)", (engine.REPOSITORY / "docker/Dockerfile").read_text(), re.MULTILINE)
    found += re.findall(r"^ +image: (\S+)", "\n".join(texts), re.MULTILINE)
    by_word = {}
    for name in found:
        word = name.split(":")[0]
        if by_word.setdefault(word, name) != name:
            raise engine.Broken(f"two versions of one image: {name} and {by_word[word]}")
    return by_word


def load(house: engine.House, binary: Path) -> None:
    """Makes the stand-ins for all images but the server's own, which the Dockerfile makes."""
    names = named()
    del names["blackboard"]
    makers = {"debian": _debian, "rust": _rust, "caddy": _caddy, "postgres": _postgres}
    with tempfile.TemporaryDirectory(prefix="images-") as home:
        stripped = Path(home, "blackboard")
        subprocess.run(["strip", "-o", stripped, binary], check=True)
        for word, name in names.items():
            makers[word](house, Tree(Path(home, word)), name, stripped)


def _debian(house: engine.House, tree: Tree, name: str, binary: Path) -> None:
    tree.add_libraries([binary])
    tree.load(house, name, CMD=["sh"])


def _rust(house: engine.House, tree: Tree, name: str, binary: Path) -> None:
    tree.write("bin/cargo", CARGO)
    tree.write("bin/apt-get", NOTHING)
    tree.copy(binary, "opt/blackboard")
    tree.load(house, name, CMD=["sh"])


def _caddy(house: engine.House, tree: Tree, name: str, _binary: Path) -> None:
    tree.copy(engine.CADDY, "usr/bin/caddy")
    for folder in ("config", "data", "srv", "etc/caddy"):
        (tree.folder / folder).mkdir()
    command = ["/usr/bin/caddy", "run", "--config", "/etc/caddy/Caddyfile", "--adapter", "caddyfile"]
    tree.load(house, name, ENV="XDG_CONFIG_HOME=/config XDG_DATA_HOME=/data", WORKDIR="/srv", CMD=command)


def _postgres(house: engine.House, tree: Tree, name: str, _binary: Path) -> None:
    """The newest PostgreSQL of this machine, whatever the version of the name is."""
    programs = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"), key=lambda path: int(path.split("/")[4]))
    if not programs:
        raise engine.LeftOut("postgresql is missing")
    home = Path(programs[-1]).parents[1]
    tree.copy(home, str(home).lstrip("/"))
    # Its compiler of queries is the largest of its libraries, and of no use to queries as short as these.
    (tree.folder / str(home).lstrip("/") / "lib/llvmjit.so").unlink(missing_ok=True)
    shutil.rmtree(tree.folder / str(home).lstrip("/") / "lib/bitcode", ignore_errors=True)
    tree.copy(Path("/usr/share/postgresql", home.name), f"usr/share/postgresql/{home.name}")
    tree.copy(Path("/usr/share/zoneinfo"), "usr/share/zoneinfo")
    locale = Path("/usr/lib/locale/C.utf8")
    if locale.exists():
        tree.copy(locale, "usr/lib/locale/C.utf8")
    used = ["initdb", "pg_ctl", "pg_isready", "postgres", "psql"]
    tree.add_libraries(home / "bin" / program for program in used)
    tree.write("usr/local/bin/entrypoint", ENTRYPOINT.replace("@BIN@", str(home / "bin")))
    tree.write("usr/bin/pg_isready", f'#!/bin/sh\nexec {home}/bin/pg_isready "$@"\n')
    data = tree.folder / "var/lib/postgresql/data"
    data.mkdir(parents=True)
    # A new volume takes this directory's owner.
    shutil.chown(data, 999, 999)
    tree.load(house, name, CMD=["/usr/local/bin/entrypoint"])
