#!/usr/bin/env python3
"""Two machines: the blocks of docs/guide/two-machines.md, pasted into two network namespaces joined by a cable.

    tests/two_machines.py [SERVER]

Runs the page's server (target/debug/blackboard) in one namespace and its agents in the other, with the page's own
addresses: curl and Python, PowerShell where there is `pwsh`, then TLS by the Caddy of tests/proxies. The page's
mistakes are made too. Nothing outside of the namespaces changes; where none can be made, a line says so.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "proxies"))
sys.dont_write_bytecode = True

import packages  # noqa: E402

PAGE = ROOT / "docs" / "guide" / "two-machines.md"
BINARY = ROOT / "target" / "debug" / "blackboard"
PYTHON = ROOT / "target" / "two-machines"
SERVER, AGENTS = "10.0.0.5", "10.0.0.6"
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
# Debian's own table, with the policy of a machine that is closed but for what is opened.
CLOSED = """table inet filter {
    chain input {
        type filter hook input priority filter; policy drop;
        iif lo accept
    }
}"""
# Debian's packages of what is run besides the page's own programs.
DEBIAN = {"curl": "curl", "ip": "iproute2", "jq": "jq", "nft": "nftables", "nsenter": "util-linux"}
# Generous limits: a machine may be ten times slower than usual.
START_S_MAX, BLOCK_S_MAX = 120, 300
# The page's blocks for a shell, in order.
SHELL = ("serve", "create", "open", "check", "planner", "worker", "install", "serve behind", "proxy", "name")
# curl's exit codes, which the page's table names.
NOT_CONNECTED, TIMED_OUT, NOT_TRUSTED = 7, 28, 60


class Machine:
    """One of the two: an address, a home, and what runs there."""

    def __init__(self, address: str, home: Path, tools: Path, enter: tuple[str, ...] = ()) -> None:
        self.address, self.home, self.enter = address, home, enter
        home.mkdir()
        path = f"{tools}:{PYTHON}/bin:{os.environ['PATH']}:/usr/sbin:/sbin"
        # Neither proxies nor folders of whoever runs the test.
        own = re.compile(r"BLACKBOARD_|XDG_|.*_proxy$", re.IGNORECASE)
        kept = {name: text for name, text in os.environ.items() if not own.match(name)}
        self.environment = kept | {"HOME": str(home), "PATH": path}

    def start(self, script: str, **streams: object) -> subprocess.Popen[str]:
        """Pastes a block; each of its lines must succeed."""
        command = [*self.enter, "bash", "-euo", "pipefail", "-c", f"cd {self.home}\n{script}"]
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT} | streams
        return subprocess.Popen(command, env=self.environment, text=True, stdin=subprocess.DEVNULL, **streams)

    def ends(self, script: str) -> tuple[int, str]:
        """Pastes a block and waits for its end: its exit code and what it printed."""
        process = self.start(script)
        said = process.communicate(timeout=BLOCK_S_MAX)[0]
        return process.returncode, said

    def paste(self, script: str) -> str:
        code, said = self.ends(script)
        if code != 0:
            sys.exit(f"FAIL on {self.address}, exit code {code}:\n{script}\nit printed:\n{said}")
        return said

    @contextlib.contextmanager
    def serves(self, script: str, is_up: str) -> Iterator[None]:
        """Pastes a block that runs until it is stopped, and waits until the command `is_up` succeeds."""
        log = self.home / "log"
        with log.open("wb") as file:
            # The block's last command is the shell's own process, which gets the signal.
            process = self.start(f"exec {script.strip()}", stdout=file)
        try:
            limit = time.monotonic() + START_S_MAX
            while self.ends(is_up)[0] != 0:
                if process.poll() is not None or time.monotonic() > limit:
                    sys.exit(f"FAIL on {self.address}, not up:\n{script}\nit printed:\n{log.read_text()}")
                time.sleep(0.1)
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


def blocks(language: str) -> list[str]:
    """The page's blocks of a language, in order."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def shell() -> dict[str, str]:
    return dict(zip(SHELL, blocks("sh"), strict=True))


def expect(what: str, seen: object, wanted: object) -> None:
    if seen != wanted:
        sys.exit(f"FAIL {what}: {seen!r}, not {wanted!r}")


def contains(what: str, text: str, *wanted: str) -> None:
    for part in wanted:
        if part not in text:
            sys.exit(f"FAIL {what}: no {part!r} in:\n{text}")
    print(f"ok   {what}")


def tools(folder: Path, server: str, homes: dict[str, Path]) -> None:
    """The commands that a page's reader has: here scp copies between two homes, and sudo needs no password."""
    folder.mkdir()
    places = "".join(f"s|^{address}:|{home}/|;" for address, home in homes.items())
    scp = f'cp "$(echo "$1" | sed "{places}")" "$(echo "$2" | sed "{places}")"'
    for name, text in {"sudo": 'exec "$@"', "scp": scp}.items():
        (folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (folder / name).chmod(0o755)
    (folder / "blackboard").symlink_to(server)
    (folder / "caddy").symlink_to(packages.program("caddy"))


@contextlib.contextmanager
def cable(home: Path) -> Iterator[tuple[str, ...]]:
    """Makes the second machine and a cable to it; gives what runs a command there."""
    holder = subprocess.Popen(["unshare", "--net", "--mount", "sleep", "infinity"])
    try:
        own = os.readlink("/proc/self/ns/mnt")
        while os.readlink(f"/proc/{holder.pid}/ns/mnt") == own:
            time.sleep(0.01)
        enter = ("nsenter", "--target", str(holder.pid), "--net", "--mount")
        hosts = home / "hosts"
        hosts.write_text("127.0.0.1 localhost\n")
        for command in (
            "ip link set lo up",
            f"ip link add cable type veth peer name cable netns {holder.pid}",
            f"ip address add {SERVER}/24 dev cable",
            "ip link set cable up",
            f"{' '.join(enter)} ip link set lo up",
            f"{' '.join(enter)} ip address add {AGENTS}/24 dev cable",
            f"{' '.join(enter)} ip link set cable up",
            f"{' '.join(enter)} mount --bind {hosts} /etc/hosts",
        ):
            subprocess.run(command.split(), check=True)
        yield enter
    finally:
        holder.kill()
        holder.wait()


def session_address(planner: str) -> str:
    """The session's address, as the Planner's block sets it."""
    return re.search(r"^board=(\S+)$", planner, re.MULTILINE)[1]


def work(name: str, server: Machine, planner: str, agents: Machine, worker: str) -> None:
    """The Planner's block on one machine and a Worker's on the other, at the same time; then a look at the board."""
    admin = f"""admin() {{ curl -sS --fail-with-body -H "X-API-Key: $(cat board/admin-token)" "$@"; }}
        board={session_address(planner)}
    """
    # What is left of an earlier one goes.
    server.ends(f"{admin} admin -X DELETE $board")
    planning = server.start(planner)
    said = agents.paste(worker)
    planned = planning.communicate(timeout=BLOCK_S_MAX)[0]
    expect(f"{name}: the Planner's exit code and text", (planning.returncode, planned), (0, planned))
    contains(f"{name}: the Planner sees who did it", planned, '"agent": "Worker"', '"pages": 3')
    contains(f"{name}: the Worker sees the verdict", said, "accepted")
    entries = json.loads(server.paste(f"{admin} admin $board/trajectories"))["entries"]
    steps = [{"agent": entry["agent"]} | entry["item"] for entry in entries]
    first = {"agent": "Worker", "step": 1, "said": "The laptop is here"}
    expect(f"{name}: the steps on the board", steps, [first, {"agent": "Worker", "step": 2, "did": "count"}])


def firewall(server: Machine, agents: Machine, opens: str, check: str) -> None:
    """Closes the server's machine as Debian's packages do, and opens it by the page's line."""
    (server.home / "closed").write_text(CLOSED)
    code, said = server.ends("nft --file closed")
    if code != 0:
        print(f"left out: the firewall, since nft says: {said.strip()}")
        return
    expect("closed: curl's exit code", agents.ends(check.replace("curl", "curl --connect-timeout 2"))[0], TIMED_OUT)
    server.paste(opens)
    contains("the firewall's line opens the port", agents.paste(check), '"status":"ok"')


def mistakes(agents: Machine) -> None:
    """What the page's table says of calls that are rejected."""
    call = f"curl -sS http://{SERVER}:8733/v1/sessions"
    claim = "/team-demo/requests/claim -H @worker.header --json '{\"ttl\":\"60s\"}' -w '%{http_code}'"
    for name, arguments, code in (
        ("a session of the pattern", "/team-demo/trajectories -H @worker.header --json '{}'", '"revision"'),
        ("no token", "/team-demo", "unauthorized"),
        ("a read beyond the pattern", "/other -H @worker.header", "session-not-found"),
        ("a write beyond the pattern", "/other/requests -H @worker.header --json '{}'", "session-not-found"),
        ("a name that is not allowed", "/team-demo -H 'Host: board.internal:8733'", "unknown-host"),
        ("nothing to claim", claim, "204"),
        ("nothing to see", "'/team-demo/state/none?wait=10ms&until=exists' -H @worker.header", "condition-not-met"),
    ):
        contains(name, agents.paste(call + arguments), code)


def plain(server: Machine, agents: Machine) -> None:
    """The page up to TLS."""
    block = shell()
    check = block["check"]
    with server.serves("blackboard serve --data elsewhere", "curl -sSf http://127.0.0.1:8733/healthz"):
        expect("a server on loopback: curl's exit code", agents.ends(check)[0], NOT_CONNECTED)
    code, said = server.ends("blackboard serve --data elsewhere --listen 10.0.0.5:8733")
    expect("a server without tokens: its exit code", code, 2)
    contains("a server without tokens", said, "can be reached from other machines, and this server has no tokens")
    with server.serves(block["serve"], check):
        server.paste(block["create"])
        contains("the way to the server", agents.paste(check), '"status":"ok"')
        firewall(server, agents, block["open"], check)
        planner = block["planner"]
        work("curl", server, planner, agents, block["worker"])
        (agents.home / "worker.py").write_text(blocks("python")[0])
        work("Python", server, planner, agents, "python worker.py")
        if shutil.which("pwsh"):
            (agents.home / "worker.ps1").write_text(blocks("powershell")[0])
            work("PowerShell", server, planner, agents, "pwsh -NoProfile -NonInteractive -File worker.ps1")
        else:
            print("left out: PowerShell, since there is no pwsh")
        mistakes(agents)


def over_tls(server: Machine, agents: Machine) -> None:
    """The page's part with a name: the same work through Caddy."""
    block = shell()
    (server.home / "Caddyfile").write_text(blocks("caddyfile")[0])
    worker, client = blocks("python")
    line = re.search(r"^client = .*$", worker, re.MULTILINE)[0]
    (agents.home / "worker.py").write_text(worker.replace(line, client))
    healthy = "curl -sSf http://127.0.0.1:8733/healthz"
    # Caddy writes its authority's certificate first; the site's own follows when the disk has time.
    secure = f"curl -sSfk --resolve board.internal:443:{SERVER} https://board.internal/healthz"
    with server.serves(block["serve behind"], healthy), server.serves(block["proxy"], secure):
        # Without effect on a machine that could not be closed.
        server.ends(block["open"].replace("8733", "443"))
        contains("TLS by the page's name", agents.paste(block["name"]), '"status":"ok"')
        expect("an unknown authority: curl's exit code", agents.ends("curl https://board.internal/")[0], NOT_TRUSTED)
        expect("past the proxy: curl's exit code", agents.ends(f"curl http://{SERVER}:8733/")[0], NOT_CONNECTED)
        planner = block["planner"].replace(SERVER, "127.0.0.1")
        by_curl = block["worker"].replace(f"http://{SERVER}:8733", "https://board.internal")
        work("curl over TLS", server, planner, agents, by_curl.replace("curl ", "curl --cacert board.crt "))
        work("Python over TLS", server, planner, agents, "python worker.py")


def inside(binary: str) -> None:
    """In namespaces of its own, which are the server's machine."""
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    with tempfile.TemporaryDirectory(prefix="two-machines-") as folder:
        homes = {SERVER: Path(folder, "server"), AGENTS: Path(folder, "agents")}
        tools(Path(folder, "tools"), binary, homes)
        with cable(Path(folder)) as enter:
            server = Machine(SERVER, homes[SERVER], Path(folder, "tools"))
            agents = Machine(AGENTS, homes[AGENTS], Path(folder, "tools"), enter)
            plain(server, agents)
            over_tls(server, agents)


def install() -> None:
    """Debian's packages, Caddy, and the Python client by the page's line, from a copy that no other step writes."""
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    missing = sorted({package for command, package in DEBIAN.items() if not shutil.which(command, path=path)})
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        apt = ["apt-get", "-q", "-y", "-o", "DPkg::Lock::Timeout=300"]
        environment = os.environ | {"DEBIAN_FRONTEND": "noninteractive"}
        subprocess.run([*apt, "update"], check=True, env=environment)
        subprocess.run([*apt, "install", "--no-install-recommends", *missing], check=True, env=environment)
    elif missing:
        sys.exit(f"Please install: {' '.join(missing)}")
    packages.install()
    if not (PYTHON / "bin" / "pip").exists():
        venv.create(PYTHON, with_pip=True)
    listed = ["git", "ls-files", "clients/python", "docs/reference/errors.md"]
    files = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.splitlines()
    line = next(block for block in blocks("sh") if block.startswith("pip install"))
    with tempfile.TemporaryDirectory() as checkout:
        for file in files:
            target = Path(checkout, file)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, target)
        pip = line.replace("pip install", f"{PYTHON}/bin/python -m pip install --quiet --disable-pip-version-check")
        subprocess.run(pip, shell=True, cwd=checkout, check=True)


def main() -> None:
    arguments = sys.argv[1:]
    if arguments[:1] == ["--inside"]:
        inside(arguments[1])
        return
    binary = os.path.abspath(arguments[0] if arguments else os.environ.get("BLACKBOARD_BIN") or BINARY)
    if not os.access(binary, os.X_OK):
        sys.exit(f"There is no {binary}: cargo build makes it")
    apart = [*NAMESPACES] if os.geteuid() == 0 else [NAMESPACES[0], "--user", "--map-root-user", *NAMESPACES[1:]]
    if not shutil.which("unshare") or subprocess.run([*apart, "true"], capture_output=True).returncode != 0:
        print("left out: no network namespace can be made here, which takes root or user namespaces")
        return
    install()
    os.execvp(apart[0], [*apart, sys.executable, __file__, "--inside", binary])


if __name__ == "__main__":
    main()
