"""A registry of npm on loopback, with the packages of one folder."""

import base64
import hashlib
import http.server
import json
import pathlib
import tarfile
import threading
import urllib.parse


class Registry:
    """Serves each .tgz of a folder as a version of its package; anything else is unknown."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "Registry":
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path.removeprefix("/"))
                found = registry.archive(name) if name.endswith(".tgz") else registry.described(name)
                self.send_response(404 if found is None else 200)
                body = b"{}" if found is None else found
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def archive(self, name: str) -> bytes | None:
        known = {path.name: path for path in self.folder.glob("*.tgz")}
        return known[name].read_bytes() if name in known else None

    def described(self, name: str) -> bytes | None:
        versions = {}
        for path in sorted(self.folder.glob("*.tgz")):
            with tarfile.open(path) as archive:
                about = json.load(archive.extractfile("package/package.json"))
            if about["name"] == name:
                digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
                about["dist"] = {"tarball": f"{self.url}/{path.name}", "integrity": f"sha512-{digest}"}
                versions[about["version"]] = about
        if not versions:
            return None
        latest = max(versions, key=lambda version: [int(part) for part in version.split(".")])
        return json.dumps({"name": name, "versions": versions, "dist-tags": {"latest": latest}}).encode()
