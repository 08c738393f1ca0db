"""Checks of container files, manifests, alerts and the system service, without running them.

The image's last stage is slim and not root, with a volume and a health check by the binary itself. Compose publishes
the server on loopback or behind TLS only, requires tokens, and gives no container a privilege that it does not need.
Kubernetes' manifests fit its schemas and the restricted pod security. Linters that come as packages are run too.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
DOCKER = ROOT / "docker"
COMPOSE = ("compose.yaml", "compose.tls.yaml", "compose.cluster.yaml")

# A container runs as its image says, but for PostgreSQL: its image begins as root.
USERS = {"database": "999:999"}

# The file of Caddy's program has this capability, and does not start without it.
CAPABILITIES = {"proxy": ["NET_BIND_SERVICE"]}

# The password is in no file that git knows; compose ends with the text behind the question mark where it is missing.
STORE = re.compile(r"postgres://blackboard:\$\{BOARD_DB_PASSWORD:\?[^}]+\}@database:5432/blackboard\b")

# The oldest version of Kubernetes that the manifests are for, and a recent one.
KUBERNETES = ("1.30", "1.37")

# Settings that the server is about to have.
PLANNED = set()

# For how long the server drains at most.
DRAIN_SECONDS = 10

# Debian's archive keeps one version of a package, so a pinned one would end the build with the next update.
# And a setting that has TOKEN in its name is no token.
HADOLINT_IGNORED = ("DL3008", "DL3064")


def instructions(text: str) -> list[tuple[str, str]]:
    joined = re.sub(r"\\\n", " ", re.sub(r"(?m)^\s*#.*\n", "", text))
    lines = (line.strip() for line in joined.splitlines())
    return [(line.split()[0].upper(), line.split(None, 1)[1]) for line in lines if line]


def dockerfile_faults(text: str) -> list[str]:
    found = instructions(text)
    stages = [index for index, (word, _) in enumerate(found) if word == "FROM"]
    last = dict(found[stages[-1] :])
    faults = []
    if len(stages) != 2:
        faults.append(f"{len(stages)} stages instead of two")
    if not re.search(r"slim|distroless|scratch", last["FROM"]):
        faults.append(f"the last stage is {last['FROM']}")
    if last.get("USER", "root").split(":")[0] in ("root", "0"):
        faults.append("the last stage runs as root")
    for word in ("VOLUME", "EXPOSE", "HEALTHCHECK", "ENTRYPOINT", "CMD"):
        if word not in last:
            faults.append(f"no {word} in the last stage")
    wanted = {"BLACKBOARD_LISTEN=0.0.0.0:8733", "BLACKBOARD_REQUIRE_TOKEN=true"}
    if not wanted <= set(last.get("ENV", "").split()):
        faults.append("by itself it listens on loopback, or asks for no token")
    for word in ("ENTRYPOINT", "CMD"):
        json.loads(last.get(word, "[]"))
    if "healthcheck" not in last.get("HEALTHCHECK", ""):
        faults.append("HEALTHCHECK is not the binary's own")
    if not any(word == "RUN" and "cargo build" in rest and "--locked" in rest for word, rest in found):
        faults.append("it is not built as Cargo.lock says")
    return faults


def service_faults(name: str, service: dict, has_proxy: bool) -> list[str]:
    faults = []
    wanted = {"read_only": True, "cap_drop": ["ALL"], "security_opt": ["no-new-privileges:true"]}
    for key, value in wanted.items():
        if service.get(key) != value:
            faults.append(f"{key} is {service.get(key)!r}")
    faults += [key for key in ("privileged", "network_mode", "pid", "container_name") if key in service]
    if service.get("user") != USERS.get(name):
        faults.append(f"user is {service.get('user')}")
    if service.get("cap_add", []) != CAPABILITIES.get(name, []):
        faults.append(f"cap_add is {service.get('cap_add')}")
    for port in map(str, service.get("ports", [])):
        is_loopback, is_tls = port.startswith("127.0.0.1:"), port.split(":")[0] in ("80", "443")
        if not (is_loopback or (is_tls and name == "proxy")) or (has_proxy and name != "proxy"):
            faults.append(f"{port} is published beyond loopback")
    faults += [f"{mount} has no size" for mount in service.get("tmpfs", []) if ":size=" not in mount]
    if name == "server":
        faults += server_faults(service)
    if name == "database":
        faults += database_faults(service)
    return faults


def server_faults(service: dict) -> list[str]:
    faults = []
    environment = service["environment"]
    # The image asks for tokens, and listens on all addresses of the container.
    own = ("BLACKBOARD_REQUIRE_TOKEN", "BLACKBOARD_INSECURE", "BLACKBOARD_LISTEN")
    faults += [f"{name} is not the image's" for name in own if name in environment]
    if environment.get("BLACKBOARD_ADMIN_TOKEN_FILE") != "/run/secrets/admin_token":
        faults.append("its first token is not the secret")
    if service.get("secrets") != ["admin_token"] or "healthcheck" not in service:
        faults.append("no secret, or no health check")
    return faults


def database_faults(service: dict) -> list[str]:
    faults = []
    environment = service["environment"]
    if not re.fullmatch(r"postgres:\d+[\w.-]*", service["image"]):
        faults.append(f"{service['image']} has no version")
    if environment.get("POSTGRES_PASSWORD_FILE") != "/run/secrets/db_password":
        faults.append("its password is not the secret")
    faults += [name for name in ("POSTGRES_PASSWORD", "POSTGRES_HOST_AUTH_METHOD") if name in environment]
    if service.get("secrets") != ["db_password"] or service["healthcheck"]["test"][1] != "pg_isready":
        faults.append("no secret, or no health check")
    if service["networks"] != ["database"] or "command" in service:
        faults.append("others than the servers reach it, or it has settings of its own")
    return faults


def cluster_faults(services: dict) -> list[str]:
    """Several servers; the password of their store is in the environment, and the proxy is in another network."""
    faults = []
    server = services["server"]
    if server["deploy"]["replicas"] < 3 or "volumes" in server:
        faults.append("server: fewer than three replicas, or a volume")
    if not STORE.match(server["environment"]["BLACKBOARD_STORE"]):
        faults.append("server: its store is not that database with the password of the environment")
    if "database" in services["proxy"]["networks"]:
        faults.append("proxy: it reaches the database")
    return faults


def compose_faults(compose: dict) -> list[str]:
    services = compose["services"]
    faults = []
    for name, service in services.items():
        faults += [f"{name}: {fault}" for fault in service_faults(name, service, "proxy" in services)]
        for volume in service.get("volumes", []):
            source, _, rest = volume.partition(":")
            is_file = source.startswith("./") and rest.endswith(":ro") and (DOCKER / source).is_file()
            if source not in compose["volumes"] and not is_file:
                faults.append(f"{name}: {volume} is no named volume, and no file that is only read")
        for network in service.get("networks", []):
            if name != "proxy" and not (compose["networks"][network] or {}).get("internal"):
                faults.append(f"{name}: {network} leads out")
    if "proxy" in services and "networks" not in services["server"]:
        faults.append("server: it is in the network that leads out")
    ignored = (ROOT / ".gitignore").read_text().split()
    for secret in compose["secrets"].values():
        if "/docker/" + secret["file"].removeprefix("./") not in ignored:
            faults.append(f"git does not ignore {secret['file']}")
    if "database" in services:
        faults += cluster_faults(services)
        if "/docker/.env" not in ignored:
            faults.append("git does not ignore .env")
    return faults


def settings_faults(texts: list[str]) -> list[str]:
    """Every setting that is named is one that the server knows."""
    sources = [*(ROOT / "src").glob("config*.rs"), *(ROOT / "src").glob("config/**/*.rs")]
    known = {name for path in sources for name in re.findall(r"BLACKBOARD_[A-Z_]+", path.read_text())}
    named = {name for text in texts for name in re.findall(r"BLACKBOARD_[A-Z_]+", text)}
    return [f"{name} is no setting" for name in sorted(named - known - PLANNED)]


def copied(text: str) -> list[str]:
    """What is copied from the context."""
    copies = [rest.split()[:-1] for word, rest in instructions(text) if word == "COPY" and "--from" not in rest]
    return [source for sources in copies for source in sources]


def copied_faults(text: str) -> list[str]:
    """Everything that is copied from the context is in it."""
    ignored = (ROOT / ".dockerignore").read_text().split()
    absent = [source for source in copied(text) if not (ROOT / source).exists() or f"!{source}" not in ignored]
    return [f"{source} is not in the build's context" for source in absent]


def unread_faults(text: str) -> list[str]:
    """Cargo reads its manifests from what is copied: it wants to see every target that they name."""
    with tempfile.TemporaryDirectory() as home:
        for source in copied(text):
            place = pathlib.Path(home, source)
            if (ROOT / source).is_dir():
                shutil.copytree(ROOT / source, place, ignore=shutil.ignore_patterns("target", "node_modules"))
            else:
                shutil.copy(ROOT / source, place)
        # With this name nothing is built. It ends with an error, and `cargo metadata` would not look for the targets.
        command = ["cargo", "build", "--offline", "--locked", "--bin", "none"]
        done = subprocess.run(command, cwd=home, capture_output=True, text=True, check=False)
    return [f"cargo: {line.strip()}" for line in done.stderr.splitlines() if "can't find" in line]


def proxy_faults(text: str, *further: str) -> list[str]:
    """What is to be seen without Caddy: streams are not held up, and nothing is published that administers it.

    No write that was sent is sent again: 'lb_retry_match' would do that."""
    faults = [f"no '{wanted}'" for wanted in ("flush_interval -1", "admin off", *further) if wanted not in text]
    unwanted = r"tls internal|trusted_proxies|header_up Host|insecure|lb_retry_match|cookie|\w+_hash"
    faults += [f"'{found}'" for found in re.findall(unwanted, text)]
    if text.count("{") != text.count("}"):
        faults.append("its braces do not match")
    return faults


def schema_faults(manifest: dict) -> list[str]:
    faults = []
    for version in KUBERNETES:
        try:
            kubernetes_validate.validate(manifest, version, strict=True)
        except kubernetes_validate.ValidationError as error:
            faults.append(f"Kubernetes {version}: {'.'.join(map(str, error.path))}: {error.message}")
        except kubernetes_validate.SchemaNotFoundError as error:
            faults.append(error.message)
    return faults


def differing(found: dict, wanted: dict) -> list[str]:
    return [f"{key} is {found.get(key)!r}" for key, value in wanted.items() if found.get(key) != value]


def pod_faults(pod: dict) -> list[str]:
    """The restricted pod security and more: no token of Kubernetes, no variables of services, a read-only root."""
    user = {"runAsUser": 10001, "runAsGroup": 10001, "fsGroup": 10001}
    context = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}, **user}
    faults = differing(
        pod, {"automountServiceAccountToken": False, "enableServiceLinks": False, "securityContext": context}
    )
    faults += [key for key in ("hostNetwork", "hostPID", "hostIPC", "initContainers") if key in pod]
    faults += [
        f"the volume {volume['name']} is of another kind"
        for volume in pod["volumes"]
        if not {"secret", "configMap", "emptyDir"} & volume.keys()
    ]
    (container,) = pod["containers"]
    context = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    faults += differing(container, {"securityContext": context})
    if not re.search(r":\d", container["image"]):
        faults.append(f"{container['image']} has no version")
    for probe, path in (("startupProbe", "/healthz"), ("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        if container[probe]["httpGet"] != {"path": path, "port": "http"}:
            faults.append(f"{probe} does not ask {path}")
    pause = container["lifecycle"]["preStop"]["sleep"]["seconds"]
    if pod["terminationGracePeriodSeconds"] < pause + DRAIN_SECONDS + 5:
        faults.append("it is killed before it has drained")
    if not {"cpu", "memory"} <= container["resources"]["requests"].keys() or not container["resources"]["limits"]:
        faults.append("its resources are not bounded")
    return faults


def environment_faults(container: dict) -> list[str]:
    environment = {variable["name"]: variable for variable in container["env"]}
    faults = []
    if environment["BLACKBOARD_STORE"].get("valueFrom") != {"secretKeyRef": {"name": "blackboard", "key": "store"}}:
        faults.append("its store is not the secret")
    if environment["BLACKBOARD_REQUIRE_TOKEN"].get("value") != "true" or "BLACKBOARD_INSECURE" in environment:
        faults.append("it asks for no token")
    if "BLACKBOARD_TRUSTED_PROXIES" not in environment:
        faults.append("it takes the ingress for the client")
    mounts = [mount["mountPath"] for mount in container["volumeMounts"] if mount.get("readOnly")]
    if str(pathlib.PurePosixPath(environment["BLACKBOARD_ADMIN_TOKEN_FILE"]["value"]).parent) not in mounts:
        faults.append("its first token is in no volume")
    return faults


def reach_faults(service: dict, policy: dict) -> list[str]:
    """Clients reach the server's port alone, by any replica; the server reaches DNS and PostgreSQL alone."""
    faults = differing(policy, {"policyTypes": ["Ingress", "Egress"]})
    for direction, wanted in (("ingress", {8733}), ("egress", {53, 5432})):
        ports = [{port["port"] for port in rule.get("ports", [{"port": "all"}])} for rule in policy[direction]]
        if set().union(*ports) != wanted:
            faults.append(f"{direction} is {ports}")
    faults += differing(service, {"type": "ClusterIP"})
    if "sessionAffinity" in service or [port["port"] for port in service["ports"]] != [8733]:
        faults.append("the service has an affinity, or other ports")
    return faults


def manifest_faults(manifests: list[dict]) -> list[str]:
    by_kind = {manifest["kind"]: manifest for manifest in manifests}
    kinds = ["Deployment", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Service"]
    if sorted(manifest["kind"] for manifest in manifests) != kinds:
        return [f"{sorted(by_kind)} instead of {kinds}; secrets are made by kubectl"]
    faults = [f"{manifest['kind']}: {fault}" for manifest in manifests for fault in schema_faults(manifest)]
    if faults:
        return faults
    namespace = by_kind.pop("Namespace")["metadata"]
    if namespace["labels"].get("pod-security.kubernetes.io/enforce") != "restricted":
        faults.append("Namespace: its pods are not restricted")
    for kind, manifest in by_kind.items():
        if manifest["metadata"].get("namespace") != namespace["name"]:
            faults.append(f"{kind}: it is in another namespace")
    deployment, policy, budget, service = (manifest["spec"] for _, manifest in sorted(by_kind.items()))
    pod = deployment["template"]["spec"]
    labels = deployment["template"]["metadata"]["labels"]
    selectors = [deployment["selector"], policy["podSelector"], budget["selector"]]
    selectors += [constraint["labelSelector"] for constraint in pod["topologySpreadConstraints"]]
    if service["selector"] != labels or any(selector != {"matchLabels": labels} for selector in selectors):
        faults.append("a selector does not select the pods")
    if deployment["replicas"] < 3 or budget["minAvailable"] != deployment["replicas"] - 1:
        faults.append("fewer than three replicas, or not just one of them may be missing")
    if deployment["strategy"]["rollingUpdate"]["maxUnavailable"] != 0:
        faults.append("Deployment: replicas go before others are ready")
    faults += [f"Deployment: {fault}" for fault in pod_faults(pod) + environment_faults(pod["containers"][0])]
    return faults + reach_faults(service, policy)


# One change each, after which the manifests must be found faulty: by the schemas, or by the checks above.
BROKEN = (
    ("Deployment", "spec.replica", 3),
    ("Deployment", "spec.replicas", "three"),
    ("Deployment", "spec.strategy.rollingUpdate.maxUnavailable", 1),
    ("Deployment", "spec.template.spec.hostNetwork", True),
    ("Deployment", "spec.template.spec.securityContext.runAsNonRoot", False),
    ("Deployment", "spec.template.spec.containers.0.securityContext.privileged", True),
    ("Deployment", "spec.template.spec.containers.0.env.0", {"name": "BLACKBOARD_STORE", "value": "postgres://h/d"}),
    ("Deployment", "spec.template.spec.terminationGracePeriodSeconds", 10),
    ("Deployment", "apiVersion", "apps/v1beta1"),
    ("Namespace", "metadata.labels", {}),
    ("NetworkPolicy", "spec.egress", [{}]),
    ("PodDisruptionBudget", "spec.minAvailable", 3),
    ("Service", "spec.selector", {"app.kubernetes.io/name": "board"}),
    ("Service", "spec.ports.0.port", "8733"),
    ("Service", "kind", "Secret"),
)


def unnoticed(manifests: list[dict]) -> list[str]:
    """The changes that the checks let pass."""
    passed = []
    for kind, path, value in BROKEN:
        changed = copy.deepcopy(manifests)
        place = next(manifest for manifest in changed if manifest["kind"] == kind)
        *outer, last = [int(name) if name.isdigit() else name for name in path.split(".")]
        for name in outer:
            place = place[name]
        place[last] = value
        if not manifest_faults(changed):
            passed.append(f"{kind} with {path} {value!r} passes")
    return passed


def alert_faults(text: str) -> list[str]:
    """Every alert tells how grave it is and what to do."""
    rules = [rule for group in yaml.safe_load(text)["groups"] for rule in group["rules"]]
    wanted = {"labels": {"severity"}, "annotations": {"summary", "remedy"}}
    return [
        f"{rule['alert']}: its {key} are not {sorted(names)}"
        for rule in rules
        for key, names in wanted.items()
        if set(rule[key]) != names
    ]


def said(command: list[str], **settings: str) -> list[str]:
    """What a linter says where it finds fault."""
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings})
    return [] if done.returncode == 0 else (done.stdout + done.stderr).strip().splitlines()


def linted() -> list[str]:
    beside = pathlib.Path(sys.executable).parent
    schema = [str(beside / "check-jsonschema"), "--builtin-schema", "vendor.compose-spec"]
    faults = said([*schema, *(str(DOCKER / name) for name in COMPOSE)])
    ignored = [f"--ignore={rule}" for rule in HADOLINT_IGNORED]
    faults += said([str(beside / "hadolint"), *ignored, str(DOCKER / "Dockerfile")])
    caddy = shutil.which("caddy")
    if caddy:
        for name in ("Caddyfile", "Caddyfile.cluster"):
            adapt = [caddy, "adapt", "--adapter", "caddyfile", "--config", str(DOCKER / name), "--validate"]
            faults += said(adapt, BOARD_HOST="board.example.org")
    else:
        print("the Caddyfiles are looked at without Caddy, which is not here (Debian has it as 'caddy')")
    return faults


def main() -> int:
    dockerfile = (DOCKER / "Dockerfile").read_text()
    texts = {name: (DOCKER / name).read_text() for name in COMPOSE}
    manifests = {path.name: path.read_text() for path in sorted((DOCKER / "kubernetes").iterdir())}
    unit = (ROOT / "packaging" / "systemd" / "blackboard.service").read_text()
    named = [dockerfile, unit, *texts.values(), *manifests.values()]
    faults = [f"settings: {fault}" for fault in settings_faults(named)]
    faults += [f"alerts: {fault}" for fault in alert_faults((DOCKER / "prometheus" / "rules.yaml").read_text())]
    yaml.safe_load((DOCKER / "prometheus" / "prometheus.yaml").read_text())
    context = copied_faults(dockerfile) or unread_faults(dockerfile)
    faults += [f"Dockerfile: {fault}" for fault in dockerfile_faults(dockerfile) + context]
    for name, text in texts.items():
        faults += [f"{name}: {fault}" for fault in compose_faults(yaml.safe_load(text))]
    faults += [f"Caddyfile: {fault}" for fault in proxy_faults((DOCKER / "Caddyfile").read_text(), "{$BOARD_HOST}")]
    cluster = proxy_faults((DOCKER / "Caddyfile.cluster").read_text(), "dynamic a", "fail_duration", "lb_retries")
    faults += [f"Caddyfile.cluster: {fault}" for fault in cluster]
    loaded = [manifest for text in manifests.values() for manifest in yaml.safe_load_all(text)]
    faults += [f"kubernetes: {fault}" for fault in manifest_faults(loaded) or unnoticed(loaded)]
    faults += linted()
    print("\n".join(faults) or "the files of docker/ keep their promises")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
