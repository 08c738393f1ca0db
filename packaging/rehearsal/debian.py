"""A Debian with systemd, made by mmdebstrap and booted over a root that no rehearsal changes. It needs root."""

import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

BOOT = pathlib.Path(__file__).with_name("boot")
RELEASE = "bookworm"
BOOT_SECONDS_MAX = 120

# A slow machine may take minutes for any of these.
COMMAND_SECONDS_MAX = 300


def missing() -> str | None:
    """Why there is no Debian here, if so."""
    if os.geteuid() != 0:
        return "only root can make one"
    for command in ("mmdebstrap", "nsenter", "unshare"):
        if shutil.which(command) is None:
            return f"{command} is not installed"
    return None


def mirror() -> str:
    """The machine's own, where it is a Debian."""
    sources = pathlib.Path("/etc/apt/sources.list.d/debian.sources")
    found = re.search(r"^URIs: (\S+)", sources.read_text(), re.MULTILINE) if sources.exists() else None
    return found[1] if found else "http://deb.debian.org/debian"


def made(root: pathlib.Path) -> pathlib.Path:
    """The root, made once."""
    if not root.exists():
        part = root.with_name(f"{root.name}.part")
        shutil.rmtree(part, ignore_errors=True)
        part.parent.mkdir(parents=True, exist_ok=True)
        command = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=systemd-sysv"]
        command += ['--aptopt=Acquire::Check-Valid-Until "false"', "--dpkgopt=force-unsafe-io"]
        command += [RELEASE, part, f"deb {mirror()} {RELEASE} main"]
        subprocess.run(command, check=True)
        part.rename(root)
    return root


class Debian:
    """One boot; what was written to it is gone afterwards."""

    def __init__(self, root: pathlib.Path, changes: pathlib.Path, packages: pathlib.Path) -> None:
        options = [
            "--mount",
            "--pid",
            "--fork",
            "--kill-child",
            "--cgroup",
            "--uts",
            "--ipc",
            "--propagation",
            "private",
        ]
        self.log = changes.with_suffix(".log").open("w+b")
        command = ["unshare", *options, BOOT, root, changes, packages]
        self.outside = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
        self.first = ""
        deadline = time.monotonic() + BOOT_SECONDS_MAX
        while not self.is_up():
            if self.outside.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                raise RuntimeError(f"Debian does not boot: {self.log.read().decode(errors='replace')[-2000:]}")
            time.sleep(0.1)

    def is_up(self) -> bool:
        children = pathlib.Path(f"/proc/{self.outside.pid}/task/{self.outside.pid}/children").read_text().split()
        self.first = children[0] if children else ""
        if not self.first:
            return False
        return self.ask("systemctl", "is-system-running").stdout.strip() in ("running", "degraded")

    def ask(self, *command: object) -> subprocess.CompletedProcess[str]:
        inside = ["nsenter", "--target", self.first, "--mount", "--pid", "--uts", "--ipc", "--wd=/root", "env", "-i"]
        inside += ["HOME=/root", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8"]
        inside += ["DEBIAN_FRONTEND=noninteractive", *map(str, command)]
        return subprocess.run(inside, capture_output=True, text=True, timeout=COMMAND_SECONDS_MAX)

    def run(self, *command: object) -> str:
        done = self.ask(*command)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}")
        return done.stdout

    def end(self) -> None:
        # With the first process everything in its namespaces ends.
        os.kill(int(self.first), signal.SIGKILL)
        self.outside.wait()
        self.log.close()
