"""Machine and versions of a measurement."""

import os
import platform
import re
import statistics
import subprocess
import time
from pathlib import Path

from contenders import ROOT, VENV

SYNC_SECONDS = 10
SYNC_BYTES = 16 << 10
SYNC_FILE_BYTES = 4 << 20
IN_MEMORY = {"tmpfs", "ramfs"}


def output(*command) -> str:
    """What a command says, or nothing if it cannot be asked."""
    try:
        done = subprocess.run(
            [str(part) for part in command], capture_output=True, text=True, cwd=ROOT, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def found(pattern: str, text: str) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    return match[1].strip() if match else "unknown"


def file_system(folder: Path) -> tuple[str, str]:
    """The type of the file system that a folder lies on, and its device."""
    folder, best = folder.resolve(), ("", "unknown", "unknown")
    for line in Path("/proc/mounts").read_text().splitlines():
        device, mounted, kind = line.split()[:3]
        if folder.is_relative_to(mounted) and len(mounted) >= len(best[0]):
            best = (mounted, kind, device)
    return best[1], best[2]


def sync_times(folder: Path, seconds: float) -> list[float]:
    """Seconds of one fdatasync after another, each of a little that was written over what was there before, as
    the server's log is: what a durable write waits for at least. The slowest tells how the disk stalls with
    nobody else on it."""
    path, times, at = folder / "sync", [], 0
    with open(path, "w+b", buffering=0) as file:
        file.truncate(SYNC_FILE_BYTES)
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            os.pwrite(file.fileno(), bytes(SYNC_BYTES), at)
            at = (at + SYNC_BYTES) % SYNC_FILE_BYTES
            begin = time.perf_counter()
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begin)
    path.unlink()
    return times


def hardware(data: Path, sharers: str, sync_seconds: float) -> list[tuple[str, str]]:
    """What the machine is, line by line; `sharers` are the processes of a measurement."""
    kind, device = file_system(data)
    memory = int(found(r"^MemTotal:\s+(\d+)", Path("/proc/meminfo").read_text()))
    model = found(r"^model name\s*:\s*(.*)$", Path("/proc/cpuinfo").read_text())
    syncs = sync_times(data, sync_seconds)
    middle, slowest = statistics.median(syncs) * 1e6, max(syncs) * 1e3
    sync = f"fdatasync of {SYNC_BYTES >> 10} KiB {middle:,.0f} µs in the median"
    return [
        ("CPU", model),
        ("cores", f"{os.cpu_count()}, which {sharers} share"),
        ("memory", f"{memory / 2**20:.1f} GiB"),
        ("kernel", f"{platform.system()} {platform.release()}"),
        ("data on", f"{kind} ({device}), {sync}, {slowest:,.0f} ms the slowest of {len(syncs):,}"),
    ]


def facts(data: Path) -> list[tuple[str, str]]:
    """The machine and its load."""
    load = ("load when it began", f"{os.getloadavg()[0]:.2f}")
    return [*hardware(data, "the contender and wrk", SYNC_SECONDS), load]


def own_version() -> str:
    """The version and the commit of this checkout."""
    lock = (ROOT / "Cargo.lock").read_text()
    commit = output("git", "rev-parse", "--short", "HEAD")
    changed = output("git", "status", "--porcelain", "--untracked-files=no", ":!README.md", ":!docs", ":!benches")
    own = found(r'^name = "blackboard"\nversion = "(.*)"', lock)
    return f"{own}, commit {commit or 'unknown'}{' with changes' if changed else ''}"


def versions() -> list[tuple[str, str]]:
    """What ran, by name and version."""
    lock = (ROOT / "Cargo.lock").read_text()
    axum = found(r'^name = "axum"\nversion = "(.*)"', lock)
    redis = found(r"v=([\d.]+)", output("redis-server", "--version"))
    webdis = output("dpkg-query", "--show", "--showformat=${Version}", "webdis") or "unknown"
    pip = output(VENV / "bin/pip", "list", "--format", "freeze")
    packages = ["fastapi", "uvicorn", "uvloop", "httptools"]
    python = [f"{name} {found(rf'^{name}==(.*)$', pip)}" for name in packages]
    return [
        ("blackboard", own_version()),
        ("bare axum", f"axum {axum}"),
        ("Redis + webdis", f"Redis {redis}, webdis {webdis}"),
        ("Python", f"{output(VENV / 'bin/python', '--version') or 'unknown'}, {', '.join(python)}"),
        ("built with", output("rustc", "--version") or "unknown"),
        ("loaded with", found(r"^(wrk \S+)", wrk_version())),
    ]


def wrk_version() -> str:
    """wrk tells its version and then exits as if it had been asked something wrong."""
    try:
        return subprocess.run(["wrk", "-v"], check=False, capture_output=True, text=True).stdout
    except OSError:
        return ""
