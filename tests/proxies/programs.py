"""The proxies: how each is started, and what stands around the block of the guide."""

from __future__ import annotations

import http.client
import re
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import packages

FOLDER = Path(__file__).parent
GUIDE = FOLDER.parents[1] / "docs" / "guide" / "proxies.md"
DEFAULTS = FOLDER / "defaults"
START_S_MAX = 60
# Addresses as the guide writes them.
BOARD_PORT = "8733"


@dataclass(frozen=True)
class Program:
    """A proxy. `{dir}`, `{port}`, `{modules}`, and `{0}`, `{1}` for its files, are filled for a run."""

    title: str  # the heading of its block in the guide
    binary: str
    version: tuple[str, ...]
    command: tuple[str, ...]
    # The place in the guide's block where it listens, and what stands there in a run.
    listens: tuple[str, str]
    # Names of the files, with what surrounds each block.
    files: tuple[tuple[str, str], ...]
    modules: str = ""

    @property
    def name(self) -> str:
        return self.title.split()[0].lower()


NGINX = """daemon off; master_process off; pid {dir}/pid; error_log stderr;
events {}
http {
    access_log off;
    client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
    uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
{block}
}
"""
APACHE_MODULES = (
    "mpm_event", "authz_core", "reqtimeout", "filter", "deflate", "headers", "setenvif", "proxy", "proxy_http",
)  # fmt: skip
# With the limits that Debian's packages bring along.
APACHE = (
    "User nobody\nGroup nogroup\nServerRoot {dir}\nServerName localhost\n"
    "PidFile {dir}/pid\nErrorLog /dev/stderr\nDefaultRuntimeDir {dir}\n"
    + "".join(f"LoadModule {name}_module {{modules}}/mod_{name}.so\n" for name in APACHE_MODULES)
    + "RequestReadTimeout header=20-40,minrate=500 body=10,minrate=500\nListen 127.0.0.1:{port}\n{block}\n"
)
CADDY = "{\n    admin off\n    storage file_system {dir}/storage\n}\n{block}\n"
LIGHTTPD = """server.document-root = "{dir}"
server.modules += ("mod_proxy", "mod_deflate")
server.bind = "127.0.0.1"
server.port = {port}
{block}
"""

PROGRAMS = (
    Program(
        "nginx", "nginx", ("-v",), ("-c", "{0}", "-p", "{dir}"), ("listen 80;", "listen 127.0.0.1:{port};"),
        (("nginx.conf", NGINX),),
    ),
    Program(
        "Apache httpd", "apache2", ("-v",), ("-f", "{0}", "-D", "FOREGROUND"), ("*:80", "127.0.0.1:{port}"),
        (("apache.conf", APACHE),), "apache2/modules",
    ),
    Program(
        "HAProxy", "haproxy", ("-v",), ("-f", "{0}"), ("bind :80", "bind 127.0.0.1:{port}"),
        (("haproxy.cfg", "{block}\n"),),
    ),
    Program(
        "Caddy", "caddy", ("version",), ("run", "--adapter", "caddyfile", "--config", "{0}"),
        ("board.example.org {", "http://board.example.org:{port} {"), (("Caddyfile", CADDY),),
    ),
    Program(
        "Envoy", "envoy", ("--version",),
        ("--config-path", "{0}", "--concurrency", "1", "--base-id", "{port}", "--log-level", "warn"),
        ("port_value: 80 ", "port_value: {port} "), (("envoy.yaml", "{block}\n"),),
    ),
    Program(
        "Varnish", "varnishd", ("-V",),
        ("-F", "-f", "{0}", "-a", "127.0.0.1:{port}", "-n", "{dir}/work", "-j", "none", "-s", "malloc,64m"),
        ("", ""), (("default.vcl", "{block}\n"),),
    ),
    Program(
        "lighttpd", "lighttpd", ("-v",), ("-D", "-f", "{0}", "-m", "{modules}"), ("", ""),
        (("lighttpd.conf", LIGHTTPD),), "lighttpd",
    ),
    Program(
        "Traefik", "traefik", ("version",), ("--configFile", "{0}"), ('":80"', '"127.0.0.1:{port}"'),
        (("traefik.yaml", "{block}\n"), ("board.yaml", "{block}\n")),
    ),
)  # fmt: skip


def blocks(title: str, count: int) -> list[str]:
    """The blocks of code under a heading of the guide."""
    section = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    found = re.findall(r"^```[a-z]*\n(.*?)^```$", section[1], re.MULTILINE | re.DOTALL) if section else []
    if len(found) < count:
        raise ValueError(f"{GUIDE.name} has {len(found)} blocks under '{title}', not {count}")
    return found[:count]


class Proxy:
    """A running proxy in front of a server; it ends with the block."""

    def __init__(self, program: Program, home: Path, port: int, server_port: int, is_default: bool) -> None:
        self.program, self.home, self.port = program, home, port
        names = [name for name, _ in program.files]
        own = [(DEFAULTS / name).read_text() for name in names] if is_default else blocks(program.title, len(names))
        fills = {"dir": str(home), "port": str(port)}
        if program.modules:
            fills["modules"] = packages.modules(program.modules)
        place, listens = program.listens
        if place and "".join(own).count(place) != 1:
            raise ValueError(f"{program.title}: '{place}' stands {''.join(own).count(place)} times in its block")
        for number, (name, frame) in enumerate(program.files):
            block = own[number].replace(BOARD_PORT, str(server_port))
            block = block.replace(place, _filled(listens, fills)) if place else block
            # What a block names of the system is in the run's own folder.
            block = block.replace("/etc/traefik", str(home))
            fills[str(number)] = str(home / name)
            (home / name).write_text(_filled(frame, fills).replace("{block}", block))
        self.command = [packages.program(program.binary), *(_filled(word, fills) for word in program.command)]
        self.log = home / "log"

    def __enter__(self) -> Proxy:
        with self.log.open("wb") as log:
            streams = {"stdin": subprocess.DEVNULL, "stdout": log, "stderr": log}
            self.process = subprocess.Popen(self.command, env=packages.environment(), cwd=self.home, **streams)
        limit = time.monotonic() + START_S_MAX
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > limit:
                self.__exit__()
                raise RuntimeError(f"{self.program.title} does not answer:\n{self.said()}")
            time.sleep(0.1)
        return self

    def __exit__(self, *_: object) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            # Some wait for their clients.
            self.process.kill()
            self.process.wait()

    def said(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def _answers(self) -> bool:
        """Returns true once an answer of the server comes through."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz", headers={"Host": "board.example.org"})
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def version(program: Program) -> str:
    """The version that a program states of itself."""
    run = [packages.program(program.binary), *program.version]
    done = subprocess.run(run, capture_output=True, text=True, check=True, env=packages.environment())
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    return found[0] if found else "?"


def _filled(text: str, fills: dict[str, str]) -> str:
    for name, value in fills.items():
        text = text.replace("{" + name + "}", value)
    return text
