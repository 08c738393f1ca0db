"""The ways to install a release: each is installed, serves, keeps what was posted over an upgrade, and is removed."""

import collections.abc
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import sys
import tarfile
import time

from . import debian
from .board import Board, Process, Unit
from .registry import Registry

ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass
class Packages:
    """The packages of a version and of a lower one, and where they are tried; in a quick one a .deb alone has both."""

    scratch: pathlib.Path
    old: pathlib.Path
    new: pathlib.Path
    old_version: str
    new_version: str
    root: pathlib.Path
    is_quick: bool


@dataclasses.dataclass
class Figures:
    """What one way weighs, and how long it took to the first answered POST."""

    size: int
    seconds: float

    def line(self, kind: str) -> str:
        return f"{kind:8} {self.size / 1e6:6.1f} MB  {self.seconds:5.1f} s from the install command to the first POST"


def one(folder: pathlib.Path, *patterns: str) -> pathlib.Path:
    """The file of the first pattern that has one."""
    for pattern in patterns:
        for path in folder.glob(pattern):
            return path
    raise FileNotFoundError(f"{folder} has no {' or '.join(patterns)}")


def run(*command: object, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)), env=clean() | environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
    return done.stdout


def clean() -> dict[str, str]:
    """The environment without settings of servers and of the caller's Python."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("BLACKBOARD_", "PYTHON"))}


def expect(wanted: object, found: object, what: str) -> None:
    if wanted != found:
        raise RuntimeError(f"{what}: {found!r} instead of {wanted!r}")


@dataclasses.dataclass
class Way:
    """How a package is installed, named and removed where servers run as plain processes."""

    command: pathlib.Path
    install: collections.abc.Callable[[pathlib.Path], None]
    version: collections.abc.Callable[[], str]
    remove: collections.abc.Callable[[], None]

    def rehearse(self, packages: Packages, data: pathlib.Path) -> float:
        begun = time.monotonic()
        self.install(packages.new if packages.is_quick else packages.old)
        with Process(self.command, data) as server:
            Board(server.url).post("at first")
            seconds = time.monotonic() - begun
        if not packages.is_quick:
            self.upgrade(packages)
        expect(packages.new_version, self.version(), "version")
        with Process(self.command, data) as server:
            Board(server.url).has("at first")
        self.remove()
        expect(False, self.command.exists(), "the command after the removal")
        expect(True, (data / "blackboard.db").exists(), "the data after the removal")
        return seconds

    def upgrade(self, packages: Packages) -> None:
        expect(packages.old_version, self.version(), "version before the upgrade")
        self.install(packages.new)


def wheel(packages: Packages) -> Figures:
    venv = packages.scratch / "venv"
    run(sys.executable, "-m", "venv", "--without-pip", venv)
    pip = [sys.executable, "-m", "pip", "--python", venv / "bin" / "python", "--disable-pip-version-check", "--quiet"]

    def install(folder: pathlib.Path) -> None:
        run(*pip, "install", "--no-index", "--find-links", folder, "--upgrade", "blackboard-server")

    def version() -> str:
        return run(
            venv / "bin" / "python", "-c", "import importlib.metadata as m; print(m.version('blackboard-server'))"
        ).strip()

    def remove() -> None:
        run(*pip, "uninstall", "--yes", "blackboard-server")

    way = Way(venv / "bin" / "blackboard", install, version, remove)
    seconds = way.rehearse(packages, packages.scratch / "data-of-wheel")
    if not packages.is_quick:
        runners(packages)
        client(packages)
    return Figures(one(packages.new, "*.whl").stat().st_size, seconds)


def runners(packages: Packages) -> None:
    """What people type who install nothing: uvx and pipx."""
    home = packages.scratch / "home"
    wheels = ["--no-index", "--find-links", packages.new]
    settings = {"HOME": str(home), "UV_CACHE_DIR": str(home / "uv")}
    uv = [sys.executable, "-m", "uv", "tool", "run", *wheels]
    version = f"blackboard {packages.new_version}\n"
    expect(version, run(*uv, "blackboard-server", "--version", **settings), "uvx blackboard-server")
    expect(version, run(*uv, "--from", "blackboard-server", "blackboard", "--version", **settings), "uvx --from")
    # Its --pip-args would be those of its own environment too, which comes from the ordinary index.
    pipx = [sys.executable, "-m", "pipx", "run", "--spec", one(packages.new, "*.whl")]
    expect(version, run(*pipx, "blackboard-server", "--version", **settings), "pipx run")


def client(packages: Packages) -> None:
    """The Python client with its extra, and its server for tests."""
    wheels, venv = packages.scratch / "client", packages.scratch / "venv-client"
    uv = [sys.executable, "-m", "uv"]
    run(*uv, "build", "--quiet", "--wheel", "--out-dir", wheels, ROOT / "clients" / "python")
    run(
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--only-binary",
        ":all:",
        "--dest",
        wheels,
        "httpx",
        "httpx-sse",
        "typing-extensions",
    )
    run(*uv, "venv", "--quiet", venv)
    links = ["--no-index", "--find-links", wheels, "--find-links", packages.new]
    run(*uv, "pip", "install", "--quiet", "--python", venv / "bin" / "python", *links, "agent-blackboard[server]")
    code = """
import agent_blackboard, agent_blackboard.testing as testing
with testing.server() as running, agent_blackboard.Client(running.url) as client:
    client.session("rehearsal").requests.append("posted by the client")
    print(testing.binary())
"""
    expect(f"{venv / 'bin' / 'blackboard'}\n", run(venv / "bin" / "python", "-c", code), "the client's server")


def npm(packages: Packages) -> Figures:
    prefix = packages.scratch / "npm-prefix"
    modules = prefix / "lib" / "node_modules"
    settings = {
        "npm_config_audit": "false",
        "npm_config_cache": str(packages.scratch / "npm-cache"),
        "npm_config_fund": "false",
        "npm_config_prefix": str(prefix),
        "npm_config_update_notifier": "false",
    }

    def install(folder: pathlib.Path) -> None:
        with Registry(folder) as registry:
            run("npm", "install", "--global", "--registry", registry.url, "blackboard-server@latest", **settings)

    def version() -> str:
        return run("node", "-p", f"require('{modules}/blackboard-server/package.json').version").strip()

    def remove() -> None:
        run("npm", "uninstall", "--global", "blackboard-server", **settings)
        expect([], list(modules.glob("blackboard-server*")), "packages after the removal")

    way = Way(prefix / "bin" / "blackboard", install, version, remove)
    seconds = way.rehearse(packages, packages.scratch / "data-of-npm")
    if not packages.is_quick:
        with Registry(packages.new) as registry:
            npx = ["npx", "--yes", "--registry", registry.url, "blackboard-server", "--version"]
            expect(f"blackboard {packages.new_version}\n", run(*npx, **settings), "npx blackboard-server")
    return Figures(sum(path.stat().st_size for path in packages.new.glob("*.tgz")), seconds)


@contextlib.contextmanager
def booted(packages: Packages, kind: str) -> collections.abc.Iterator[debian.Debian]:
    system = debian.Debian(debian.made(packages.root), packages.scratch / f"debian-of-{kind}", packages.scratch)
    try:
        yield system
    finally:
        system.end()


def served(system: debian.Debian, begun: float) -> float:
    """The seconds until a POST is answered by a server started by hand."""
    with Unit(system, "by-hand", "blackboard serve --data /root/data") as server:
        Board(server.url).post("by hand")
        seconds = time.monotonic() - begun
    with Unit(system, "by-hand", "blackboard serve --data /root/data") as server:
        Board(server.url).has("by hand")
    return seconds


def deb(packages: Packages) -> Figures:
    old, new = one(packages.old, "*.deb"), one(packages.new, "*.deb")
    data, backups = "/var/lib/blackboard/data", "/var/lib/blackboard/backups"

    def apt(*command: object) -> None:
        system.run("apt-get", "--yes", "--quiet", "--no-install-recommends", *command)

    with booted(packages, "deb") as system:
        begun = time.monotonic()
        apt("install", f"/mnt/old/{old.name}")
        seconds = served(system, begun)
        expect("disabled", system.ask("systemctl", "is-enabled", "blackboard").stdout.strip(), "the unit")
        with Unit(system, "blackboard") as service:
            board = Board(service.url, system.run("cat", f"{data}/admin-token").strip())
            board.post("before the upgrade")
            first = service.process()
            apt("install", f"/mnt/new/{new.name}")
            expect(
                f"{packages.new_version}-1", system.run("dpkg-query", "-Wf${Version}", "blackboard-server"), "version"
            )
            board.has("before the upgrade")
            expect(True, service.process() not in ("0", first), "the service was started again by the upgrade")
            system.run("blackboard", "backup", "--data", data, "--to", f"{backups}/first")
            apt("remove", "blackboard-server")
            expect("inactive", system.ask("systemctl", "is-active", "blackboard").stdout.strip(), "the service")
        system.run("test", "-e", f"{data}/blackboard.db")
        apt("purge", "blackboard-server")
        expect(1, system.ask("test", "-e", data).returncode, "the data after a purge is there")
        system.run("test", "-e", f"{backups}/first/blackboard.db")
    return Figures(new.stat().st_size, seconds)


def tarball(packages: Packages) -> Figures:
    new = one(packages.new, "*.tar.gz")
    first = new if packages.is_quick else one(packages.old, "*.tar.gz")
    local = "/usr/local"

    def unpack(archive: pathlib.Path) -> None:
        place = archive.relative_to(packages.scratch)
        system.run("tar", "-xzf", f"/mnt/{place}", "-C", local, "--strip-components=1")

    with booted(packages, "tarball") as system:
        begun = time.monotonic()
        unpack(first)
        seconds = served(system, begun)
        with Unit(system, "blackboard") as service:
            board = Board(service.url, system.run("cat", "/var/lib/blackboard/data/admin-token").strip())
            board.post("at first")
            unpack(new)
            system.run("systemctl", "restart", "blackboard")
            board.has("at first")
        with tarfile.open(new) as archive:
            files = [entry.name.split("/", 1)[1] for entry in archive if entry.isfile()]
        system.run("rm", *(f"{local}/{file}" for file in files))
        expect(1, system.ask("test", "-e", f"{local}/bin/blackboard").returncode, "the command after the removal")
        system.run("test", "-e", "/var/lib/blackboard/data/blackboard.db")
    return Figures(new.stat().st_size, seconds)
