"""The container files, held to what they promise where no container engine runs.

Last stage slim and not root, a volume, a health check of the binary's own; compose publishes on
loopback only and gives the container nothing that it does not need.
"""

import json
import pathlib
import re
import sys

import yaml

DOCKER = pathlib.Path(__file__).resolve().parent.parent / "docker"


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
    for word in ("ENTRYPOINT", "CMD"):
        json.loads(last.get(word, "[]"))
    if "healthcheck" not in last.get("HEALTHCHECK", ""):
        faults.append("HEALTHCHECK is not the binary's own")
    return faults


def compose_faults(text: str) -> list[str]:
    compose = yaml.safe_load(text)
    faults = []
    for name, service in compose["services"].items():
        wanted = {
            "read_only": True,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges:true"],
        }
        for key, value in wanted.items():
            if service.get(key) != value:
                faults.append(f"{name}: {key} is {service.get(key)!r}")
        for port in service.get("ports", []):
            if not str(port).startswith("127.0.0.1:"):
                faults.append(f"{name}: {port} is published beyond loopback")
        for key in ("privileged", "network_mode", "pid"):
            if key in service:
                faults.append(f"{name}: {key}")
        volumes = [volume.split(":")[0] for volume in service.get("volumes", [])]
        for volume in volumes:
            if volume not in compose.get("volumes", {}):
                faults.append(f"{name}: {volume} is no named volume")
    return faults


def settings_faults(text: str) -> list[str]:
    """Every setting that is named is one that the server knows."""
    known = set(re.findall(r"BLACKBOARD_[A-Z_]+", (DOCKER.parent / "src" / "config.rs").read_text()))
    return [f"{name} is no setting" for name in re.findall(r"BLACKBOARD_[A-Z_]+", text) if name not in known]


def copied_faults(text: str) -> list[str]:
    """Everything that is copied from the context is in it."""
    ignored = (DOCKER.parent / ".dockerignore").read_text().split()
    faults = []
    for word, rest in instructions(text):
        if word != "COPY" or "--from" in rest:
            continue
        for source in rest.split()[:-1]:
            if not (DOCKER.parent / source).exists() or f"!{source}" not in ignored:
                faults.append(f"{source} is not in the build's context")
    return faults


def main() -> int:
    dockerfile, compose = (DOCKER / "Dockerfile").read_text(), (DOCKER / "compose.yaml").read_text()
    faults = [f"docker: {fault}" for fault in settings_faults(dockerfile + compose) + copied_faults(dockerfile)]
    faults += [f"Dockerfile: {fault}" for fault in dockerfile_faults(dockerfile)]
    faults += [f"compose.yaml: {fault}" for fault in compose_faults(compose)]
    print("\n".join(faults) or "docker/Dockerfile and docker/compose.yaml keep their promises")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
