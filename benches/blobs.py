#!/usr/bin/env python3
"""Resident memory of a server that takes and sends blobs.

    benches/blobs.py [--server PATH] [--blobs N] [--clients N]

Uploads N blobs (32) of 32 MiB of random bytes by one client, reads them all and checks their digests; then the same by
several clients at once (8). Prints the peak of resident memory after each part, and the times. Reports figures without
judging them.
"""

import argparse
import concurrent.futures
import hashlib
import http.client
import pathlib
import random
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests"))
from board_server import Server

BYTES, READ = 32 << 20, 1 << 20


def peak(server):
    """The peak of resident memory, in MiB."""
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmHWM"))) >> 10


def put(address, session, seed):
    """Uploads a blob and returns its digest."""
    blob = random.Random(seed).randbytes(BYTES)
    digest = hashlib.sha256(blob).hexdigest()
    connection = http.client.HTTPConnection(*address, timeout=120)
    connection.request("PUT", f"/v1/sessions/{session}/blobs/{digest}", blob)
    answer = connection.getresponse()
    said = answer.read()
    connection.close()
    if answer.status != 201:
        raise RuntimeError(f"{answer.status} {said[:300]}")
    return digest


def get(address, session, digest):
    connection = http.client.HTTPConnection(*address, timeout=120)
    connection.request("GET", f"/v1/sessions/{session}/blobs/{digest}")
    answer, read = connection.getresponse(), hashlib.sha256()
    while piece := answer.read(READ):
        read.update(piece)
    connection.close()
    if read.hexdigest() != digest:
        raise RuntimeError(f"{answer.status}: other bytes than {digest}")


def both(address, session, seed):
    get(address, session, put(address, session, seed))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--server", default="target/dist/blackboard")
    parser.add_argument("--blobs", type=int, default=32)
    parser.add_argument("--clients", type=int, default=8)
    wanted = parser.parse_args()
    with Server(wanted.server) as server:
        idle, size = peak(server), f"{wanted.blobs * BYTES >> 20} MiB"
        begun = time.monotonic()
        digests = [put(server.address, "one", seed) for seed in range(wanted.blobs)]
        print(f"{size} in: {peak(server) - idle} MiB above {idle}, {time.monotonic() - begun:.1f} s")
        begun = time.monotonic()
        for digest in digests:
            get(server.address, "one", digest)
        print(f"{size} out: {peak(server) - idle} MiB above {idle}, {time.monotonic() - begun:.1f} s")
        with concurrent.futures.ThreadPoolExecutor(wanted.clients) as pool:
            seeds = range(wanted.blobs, 2 * wanted.blobs)
            for one in [pool.submit(both, server.address, "many", seed) for seed in seeds]:
                one.result()
        print(f"{size} in and out by {wanted.clients} at once: {peak(server) - idle} MiB above {idle}")


if __name__ == "__main__":
    main()
