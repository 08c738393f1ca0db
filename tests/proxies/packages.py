"""Packages of the proxies, in target/proxies: Debian's unpacked there, so that no service is installed or started."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess
import venv
from pathlib import Path

FOLDER = Path(__file__).parent
TARGET = FOLDER.parents[1] / "target" / "proxies"
ROOT, WHEELS = TARGET / "root", TARGET / "wheels"
DEBIAN = ("nginx", "apache2", "haproxy", "varnish", "lighttpd", "lighttpd-mod-deflate")
REQUIREMENTS = FOLDER / "requirements.txt"


class Missing(Exception):
    """A program that is not there and cannot be installed."""


def _apt(command: str, *options: str) -> None:
    # Without a lock it needs no root; nothing outside of target/ is written.
    rights = () if os.geteuid() == 0 else ("-o", "Debug::NoLocking=1")
    run = ["apt-get", command, "-q", "-y", *rights, *options]
    subprocess.run(run, check=True, env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"})


def _debian() -> None:
    """Downloads the packages, installed or not, with what they need and the system lacks, and unpacks them."""
    if not shutil.which("apt-get"):
        raise Missing(f"without apt-get, please install {', '.join(DEBIAN)}")
    archives = TARGET / "archives"
    (archives / "partial").mkdir(parents=True, exist_ok=True)
    options = (
        "--download-only",
        "--reinstall",
        "--no-install-recommends",
        "-o",
        f"Dir::Cache::archives={archives}",
        *DEBIAN,
    )
    try:
        _apt("install", *options)
    except subprocess.CalledProcessError:
        # The lists are missing, or name versions that are no more.
        _apt("update")
        _apt("install", *options)
    for archive in archives.glob("*.deb"):
        subprocess.run(["dpkg-deb", "--extract", archive, ROOT], check=True)
    shutil.rmtree(archives)


def _wheels() -> None:
    venv.create(WHEELS, with_pip=True)
    pip = [WHEELS / "bin" / "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", REQUIREMENTS], check=True)


def install() -> None:
    """Installs all of them, unless that was done."""
    wanted = " ".join(DEBIAN) + "\n" + REQUIREMENTS.read_text()
    mark = TARGET / "installed"
    if mark.exists() and mark.read_text() == wanted:
        return
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    _debian()
    _wheels()
    mark.write_text(wanted)


def program(name: str) -> str:
    """The path of a program, unpacked or of the system."""
    places = [WHEELS / "bin", ROOT / "usr/sbin", ROOT / "usr/bin"]
    system = os.environ.get("PATH", os.defpath).split(os.pathsep)
    path = shutil.which(name, path=os.pathsep.join([*map(str, places), *system, "/usr/sbin"]))
    if path is None:
        raise Missing(f"there is no program {name}")
    return path


def modules(folder: str) -> str:
    """The path of a folder of modules below /usr/lib, unpacked or of the system."""
    found = [path for root in (ROOT, Path("/")) for path in glob.glob(f"{root}/usr/lib/{folder}")]
    if not found:
        raise Missing(f"there is no /usr/lib/{folder}")
    return found[0]


def environment() -> dict[str, str]:
    """The environment of an unpacked program, which finds its libraries."""
    libraries = glob.glob(f"{ROOT}/usr/lib/*-linux-gnu*")
    return {**os.environ, "LD_LIBRARY_PATH": os.pathsep.join(libraries)} if libraries else dict(os.environ)
