#!/usr/bin/env python3
"""PostgreSQL service for one test: a temporary cluster on a free port of loopback.

    tests/postgres.py COMMAND...

Runs the command with BLACKBOARD_TEST_POSTGRES set to its address, and ends the cluster with it. The programs are those of
Debian's package, or of PATH. As root the cluster runs as the user postgres, since PostgreSQL refuses root. Its files are
in memory where there is room, unless TMPDIR says where.
"""

import argparse
import glob
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_S_MAX = 60
MEMORY, MEMORY_BYTES_MIN = "/dev/shm", 6 << 30
# For a cluster that lives as long as its tests: nothing of it is read after a crash. Its log stays as short as any, since it
# may be in memory.
SHORT_LIVED = ["autovacuum=off", "jit=off", "full_page_writes=off", "checkpoint_timeout=1h"]
SETTINGS = ["listen_addresses=127.0.0.1", "max_connections=400", "unix_socket_directories=", "log_min_messages=fatal"]


def program(name):
    """The newest program of that name."""
    found = sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), key=lambda path: int(path.split("/")[4]))
    path = found[-1] if found else shutil.which(name)
    if not path:
        sys.exit(f"{name} is missing; install postgresql")
    return path


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def owner():
    """The arguments by which a subprocess runs as PostgreSQL's user."""
    if os.geteuid() != 0:
        return {}
    user = pwd.getpwnam("postgres")
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


class Cluster:
    """One PostgreSQL server with its data; it ends with the block."""

    def __init__(self, home, name="primary", settings=()):
        self.data, self.port = os.path.join(home, name), free_port()
        self.settings, self.process = [*SETTINGS, *settings], None

    def init(self):
        run("initdb", "--pgdata", self.data, "--username", "blackboard", "--auth", "trust", "--encoding", "UTF8",
            "--locale", "C.UTF-8", "--no-sync")
        return self

    def follow(self, primary):
        """Makes it a standby of another one."""
        run("pg_basebackup", "--pgdata", self.data, "--write-recovery-conf", "--checkpoint", "fast", "--dbname",
            f"host=127.0.0.1 port={primary.port} user=blackboard application_name=standby")
        return self

    def start(self):
        options = [word for setting in self.settings for word in ("-c", setting)]
        command = [program("postgres"), "-D", self.data, "-p", str(self.port), *options]
        log = open(self.data + ".log", "a", encoding="utf-8")
        self.process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, cwd="/", **owner()
        )
        self.wait()
        return self

    def wait(self):
        """Returns once it takes connections."""
        begun = time.monotonic()
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() - begun > START_S_MAX:
                with open(self.data + ".log", encoding="utf-8") as log:
                    raise RuntimeError("PostgreSQL does not start:\n" + log.read()[-4000:])
            time.sleep(0.02)

    def is_ready(self):
        ready = [program("pg_isready"), "--quiet", "--host", "127.0.0.1", "--port", str(self.port)]
        return subprocess.run(ready, check=False).returncode == 0

    def kill(self):
        """Ends it and all its processes without a chance to do anything."""
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait()

    def promote(self):
        run("pg_ctl", "promote", "--pgdata", self.data, "--wait")

    def sql(self, statement):
        shown = subprocess.run(
            [program("psql"), "-XAtq", "-h", "127.0.0.1", "-p", str(self.port), "-U", "blackboard", "postgres", "-c",
             statement],
            capture_output=True, text=True, check=True,
        )
        return shown.stdout.strip()

    def url(self):
        return f"postgres://blackboard@127.0.0.1:{self.port}/postgres"


class Pooler:
    """A pgbouncer before a cluster, which answers under an address of its own."""

    def __init__(self, home, cluster, mode):
        self.data, self.port, self.process = os.path.join(home, f"pooler-{mode}"), free_port(), None
        os.mkdir(self.data)
        users, settings = os.path.join(self.data, "users"), os.path.join(self.data, "pgbouncer.ini")
        with open(users, "w", encoding="utf-8") as file:
            file.write('"blackboard" ""\n')
        with open(settings, "w", encoding="utf-8") as file:
            # Enough sessions for the pools of three servers.
            file.write(
                f"[databases]\n* = host=127.0.0.1 port={cluster.port}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n"
                f"listen_port = {self.port}\nunix_socket_dir =\nauth_type = trust\nauth_file = {users}\n"
                f"pool_mode = {mode}\ndefault_pool_size = 100\nmax_client_conn = 400\nserver_login_retry = 0.1\n"
            )

    def start(self):
        path = shutil.which("pgbouncer") or "/usr/sbin/pgbouncer"
        if not os.path.exists(path):
            sys.exit("pgbouncer is missing; install pgbouncer")
        with open(os.path.join(self.data, "log"), "a", encoding="utf-8") as log:
            # It refuses to run as root, as PostgreSQL does.
            command = [path, "--quiet", os.path.join(self.data, "pgbouncer.ini")]
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/", **owner())
        begun = time.monotonic()
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
                return self
            except OSError:
                if self.process.poll() is not None or time.monotonic() - begun > START_S_MAX:
                    raise
                time.sleep(0.02)

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def url(self):
        return f"postgres://blackboard@127.0.0.1:{self.port}/postgres"


def run(name, *arguments):
    done = subprocess.run([program(name), *arguments], capture_output=True, text=True, check=False, cwd="/", **owner())
    if done.returncode:
        raise RuntimeError(f"{name}: {done.stdout}{done.stderr}")


class Home:
    """A temporary directory that PostgreSQL's user may write to."""

    def __init__(self, parent=None):
        self.parent = parent

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="blackboard-postgres-", dir=self.parent)
        user = owner()
        if user:
            os.chown(self.path, user["user"], user["group"])
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def in_memory():
    """A file system in memory with room for the schemas of all tests, each of which is many new files; or None."""
    try:
        has_room = shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN
    except OSError:
        has_room = False
    return MEMORY if has_room and "TMPDIR" not in os.environ else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("command", nargs=argparse.REMAINDER)
    command = parser.parse_args().command
    with Home(in_memory()) as home:
        cluster = Cluster(home, settings=SHORT_LIVED).init().start()
        try:
            environment = {**os.environ, "BLACKBOARD_TEST_POSTGRES": cluster.url()}
            sys.exit(subprocess.run(command, env=environment, check=False).returncode)
        finally:
            cluster.stop()


if __name__ == "__main__":
    main()
