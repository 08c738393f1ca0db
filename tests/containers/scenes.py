"""What is played in the engine: one server by itself and by Compose, backups, TLS, faults, a cluster."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from documents import Pages
from engine import Broken, House

OPERATIONS, CLUSTER = "docs/operations.md", "docs/cluster.md"
COMPOSE = "docker compose --ansi never --file docker/compose.yaml"
BOARD = "http://127.0.0.1:8733"
CURL = "curl -sS --max-time 20 -w ' %{http_code}'"
ASK = CURL + ' -H "Authorization: Bearer $(cat docker/admin_token)"'
ASK_SMALL = CURL + ' -H "Authorization: Bearer $(docker exec small cat /data/admin-token)"'


class Stage:
    """A house with the pages, and the number of checks that passed."""

    def __init__(self, house: House, pages: Pages):
        self.house, self.pages, self.passed = house, pages, 0

    def see(self, script: str, expect: str = "", fails: bool = False) -> str:
        """Runs a script, whose output must have a text."""
        text = self.house.run(script, expect=expect, fails=fails)
        self.passed += 1
        return text

    def paste(self, page: str, heading: str, number: int, *expected: str) -> None:
        """Runs a block of a document, whose output must have some texts."""
        self.play(self.pages.take(page, heading, number), *expected)

    def play(self, block: str, *expected: str, **variables: str) -> None:
        """Runs a block with variables in its environment."""
        text = self.house.run(block, variables=variables)
        for expect in expected:
            if expect not in text:
                raise Broken(f"'{expect}' is missing in what this block printed:\n{block}--\n{text}")
        self.passed += 1

    def until(self, script: str, expect: str = "") -> None:
        """Runs a script until its output has a text."""
        self.house.until(script, expect)
        self.passed += 1


def image_alone(stage: Stage) -> None:
    """The image without any setting, by 'docker run'."""
    stage.paste(OPERATIONS, "In a container", 0, '"status":"ok"', '{"sessions":[]')
    alone = "docker run --rm --read-only --tmpfs /tmp --cap-drop ALL blackboard:0.1.0"
    stage.see(f"{alone} --version", "blackboard 0.1.0")
    stage.see(f"{alone} check --data /data", "is not a data directory", fails=True)
    stage.see("docker logs board", '"path":"/data/admin-token"')
    stage.see(f"curl -s -w ' %{{http_code}}' {BOARD}/v1/sessions", " 401")
    stage.until("docker inspect --format '{{.State.Health.Status}}' board", "healthy")
    stage.see("docker stop board >/dev/null; docker inspect --format '{{.State.ExitCode}}' board", "0")
    stage.see("docker logs board 2>&1 | tail -n 1", '"stopped"')
    stage.see("docker start board >/dev/null")
    stage.until(f"curl -s {BOARD}/readyz", '"status":"ok"')
    stage.see("docker rm --force board >/dev/null")


def compose(stage: Stage) -> None:
    """compose.yaml: the token, privileges, a restart, a kill."""
    stage.paste(OPERATIONS, "With Compose", 0, '"status":"ok"')
    stage.paste(OPERATIONS, "With Compose", 1, '{"sessions":[]', "created app", "admin-token-file")
    stage.see(f'{ASK} {BOARD}/v1/sessions/demo/requests --json \'{{"request":"Print"}}\'', " 201")
    stage.see(f"{COMPOSE} exec --no-TTY server sh -c 'echo >/x'", "Read-only file system", fails=True)
    pid = "$(docker inspect --format '{{.State.Pid}}' blackboard-server-1)"
    stage.see(f"cat /proc/{pid}/status", "CapEff:\t0000000000000000")
    # Docker starts it again by itself.
    stage.see(f"kill -9 {pid}")
    stage.until(f"{ASK} {BOARD}/v1/sessions/demo", '"requests":1')
    old = stage.house.run("cat docker/admin_token").strip()
    stage.paste(OPERATIONS, "With Compose", 2)
    stage.until(f"{ASK} {BOARD}/v1/sessions/demo", '"requests":1')
    stage.see(f"curl -s -w ' %{{http_code}}' -H 'Authorization: Bearer {old}' {BOARD}/v1/sessions", " 401")
    # The old token put back.
    stage.see(f"{COMPOSE} stop; cp -p docker/admin_token kept; printf %s '{old}' >docker/admin_token")
    stage.see(f"{COMPOSE} up --detach")
    stage.until(f"{COMPOSE} logs --tail 1 server", "was revoked, and stays invalid")
    stage.see(f"{COMPOSE} down; cp -p kept docker/admin_token; {COMPOSE} up --detach")
    stage.until(f"{ASK} {BOARD}/v1/sessions/demo", '"requests":1')
    stage.see(f"{COMPOSE} stop; docker inspect --format '{{{{.State.ExitCode}}}}' blackboard-server-1", "0")


def wrong_owner(stage: Stage) -> None:
    """A token that only root can read: the log names the remedy, and the container does not spin."""
    stage.see(f"chown 0 docker/admin_token; {COMPOSE} up --detach")
    wanted = "runs as user 10001, and /run/secrets/admin_token belongs to user 0 with mode 0600"
    stage.until(f"{COMPOSE} logs server", wanted)
    # Docker doubles its pause after each start, from a tenth of a second: there are six in the first five seconds.
    starts = stage.see(f"sleep 5; {COMPOSE} logs --since 5s server | grep -c 'runs as user'")
    if int(starts) > 8:
        raise Broken(f"{starts} starts in five seconds")
    stage.see(f"chown 10001 docker/admin_token; {COMPOSE} up --detach")
    stage.until(f"curl -s {BOARD}/readyz", '"status":"ok"')


def backup(stage: Stage) -> None:
    """A backup, its copy, and the way back."""
    stage.paste(OPERATIONS, "Backup of a container", 0, "sound")
    stage.see(f'{ASK} {BOARD}/v1/sessions/demo/requests --json \'{{"request":"Later"}}\'', " 201")
    stage.paste(OPERATIONS, "Backup of a container", 1)
    stage.see(f"{ASK} {BOARD}/v1/sessions/demo", '"requests":1')
    stage.see(f"{COMPOSE} exec --no-TTY server blackboard check", "sound")
    stage.see(f"{COMPOSE} exec --no-TTY server ls /backups/replaced", "blackboard.db")


def tls(stage: Stage) -> None:
    """compose.tls.yaml. Caddy signs for localhost by itself, and its certificate is not known to the system."""
    stage.see(f"{COMPOSE} down")
    known = (
        "for _ in $(seq 100); do docker cp blackboard-proxy-1:/data/caddy/pki/authorities/local/root.crt ca.crt "
        ">/dev/null 2>&1 && break; sleep 0.3; done\n"
    )
    block = stage.pages.take(OPERATIONS, "TLS in front of it", 0).replace("board.example.org", "localhost")
    start, curl, rest = block.partition("curl ")
    # curl takes the certificate from a variable, once the file is there.
    stage.play(start + known + curl + rest, '"status":"ok"', CURL_CA_BUNDLE="ca.crt")
    demo = "https://localhost/v1/sessions/demo"
    stage.see(f"{ASK} --cacert ca.crt {demo}", '"requests":1')
    stage.see(f"{ASK} --cacert ca.crt -N --max-time 3 '{demo}/events?after=0' || true", "data: {")
    stage.see("curl -s -o /dev/null -w '%{http_code}' http://localhost/", "308")
    stage.see("docker compose --file docker/compose.tls.yaml down --volumes; rm docker/.env")


def bind_mount(stage: Stage) -> None:
    """A directory of the host, first as Docker makes it, then as the document does."""
    stage.see("docker run --name bare --volume ./made-by-docker:/data blackboard:0.1.0", fails=True)
    stage.see("docker logs bare", "runs as user 10001, and /data belongs to user 0 with mode 0755")
    stage.see("docker logs bare", "'sudo chown -R 10001 /data'")
    stage.paste(OPERATIONS, "Bind mounts", 0)
    stage.until("curl -s http://127.0.0.1:8735/readyz", '"status":"ok"')
    stage.see("docker rm --force bare bound >/dev/null")


def full_volume(stage: Stage) -> None:
    """A volume of 24 MiB, filled by writes, and emptied by a deletion."""
    stage.see(
        "docker volume create --opt type=tmpfs --opt device=tmpfs --opt o=size=24m,uid=10001,mode=700 small\n"
        "docker run --detach --name small --publish 127.0.0.1:8736:8733 --volume small:/data blackboard:0.1.0"
    )
    board = "http://127.0.0.1:8736"
    stage.until(f"curl -s {board}/readyz", '"status":"ok"')
    stage.see(
        f"""
        head -c 500000 /dev/urandom | base64 -w 0 | sed 's/.*/{{"request":"&"}}/' >large
        said=' 201'
        for _ in $(seq 60); do
            [[ $said == *' 201' ]] || break
            said=$({ASK_SMALL} --json @large {board}/v1/sessions/big/requests)
        done
        echo "$said"
        """,
        " 507",
    )
    stage.see(f"{ASK_SMALL} {board}/readyz", '"status":"full"')
    stage.see(f"{ASK_SMALL} -X DELETE {board}/v1/sessions/big", " 20")
    stage.until(f'{ASK_SMALL} --json \'{{"request":"x"}}\' {board}/v1/sessions/small/requests', " 201")
    stage.see("docker logs small", "the disk is full")
    stage.see("docker rm --force small >/dev/null; docker volume rm small")


WRITER = """
TOKEN=$(cat docker/admin_token)
for n in $(seq 200); do
    [ ! -e stop ] || break
    curl -sS --max-time 60 --retry 30 --retry-all-errors --retry-delay 1 -o said -w '%{http_code}\\n' \\
        -H "Authorization: Bearer $TOKEN" -H "Idempotency-Key: writer-$n" --json "{\\"request\\":\\"$n\\"}" \\
        http://127.0.0.1:8733/v1/sessions/cluster/requests
done
"""


def cluster(stage: Stage) -> None:
    """compose.cluster.yaml: three servers, of which one is killed while a client writes."""
    stage.see("rm -f docker/admin_token docker/.env docker/db_password")
    stage.paste(CLUSTER, "Start with Compose", 0, '"status":"ok"')
    written: list[str] = []
    writing = threading.Thread(target=lambda: written.append(stage.house.run(WRITER)))
    writing.start()
    try:
        listed = f"{ASK} '{BOARD}/v1/sessions/cluster'"
        stage.until(f"{listed} | grep -E '\"requests\":([5-9]|[1-9][0-9]+)'")
        stage.see("docker kill blackboard-cluster-server-2")
        before = count(stage)
        stage.until(f"[ $({listed} | sed -nE 's/.*\"requests\":([0-9]+).*/\\1/p') -gt {before + 5} ]")
    finally:
        stage.house.run("touch stop")
        writing.join()
    if not written:
        raise Broken("the writer failed")
    codes = written[0].split()
    if set(codes) != {"201"} or count(stage) != len(codes):
        raise Broken(f"{count(stage)} requests after {len(codes)} answers: {sorted(set(codes))}")
    stage.see("docker logs blackboard-cluster-server-1 2>&1 | grep listening | grep -v '\"sessions\"'")
    stage.paste(CLUSTER, "Start with Compose", 1, '"session":"cluster"', "created app")
    stage.see("docker ps --filter name=blackboard-cluster-server --format '{{.Status}}' | grep -c healthy", "5")
    stage.see("docker compose --file docker/compose.cluster.yaml down --volumes")


def count(stage: Stage) -> int:
    """The requests of the cluster's session."""
    said = stage.house.run(f"{ASK} --retry 20 --retry-all-errors --fail-with-body {BOARD}/v1/sessions/cluster")
    return int(re.findall(r'"requests":(\d+)', said)[0])


SCENES: dict[str, Callable[[Stage], None]] = {
    "image alone": image_alone,
    "compose": compose,
    "wrong owner": wrong_owner,
    "backup": backup,
    "tls": tls,
    "bind mount": bind_mount,
    "full volume": full_volume,
    "cluster": cluster,
}
