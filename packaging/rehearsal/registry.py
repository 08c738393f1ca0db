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
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self.handler())
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        self.archives = {path.name: path for path in folder.glob("*.tgz")}
        self.packages = self.described()

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
                if name in registry.archives:
                    found = registry.archives[name].read_bytes()
                else:
                    found = registry.packages.get(name)
                self.send_response(404 if found is None else 200)
                body = b"{}" if found is None else found
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        return Handler

    def described(self) -> dict[str, bytes]:
        """What a registry says of each package: its versions, each a package.json with its archive, and the latest."""
        versions: dict[str, dict[str, dict]] = {}
        for path in self.archives.values():
            with tarfile.open(path) as archive:
                about = json.load(archive.extractfile("package/package.json"))
            digest = base64.b64encode(hashlib.sha512(path.read_bytes()).digest()).decode()
            about["dist"] = {"tarball": f"{self.url}/{path.name}", "integrity": f"sha512-{digest}"}
            versions.setdefault(about["name"], {})[about["version"]] = about
        found = {}
        for name, of_package in versions.items():
            latest = max(of_package, key=lambda version: [int(part) for part in version.split(".")])
            found[name] = {"name": name, "versions": of_package, "dist-tags": {"latest": latest}}
        return {name: json.dumps(about).encode() for name, about in found.items()}
