// Server on a free port with a new data directory, and requests to it.

import { spawn } from "node:child_process";
import { access, mkdtemp, rm } from "node:fs/promises";
import { Agent, request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** The binary that is measured: BLACKBOARD_BIN, else the build that ships, the release build, or the debug build. */
export async function binary() {
  const given = process.env.BLACKBOARD_BIN;
  const candidates = given ? [given] : ["dist", "release", "debug"].map((profile) => join(ROOT, "target", profile, "blackboard"));
  for (const path of candidates) {
    const isThere = await access(path).then(() => true, () => false);
    if (isThere) return path;
  }
  throw new Error(`no binary at ${candidates.join(" or ")}; build it with cargo build --profile dist, or name one in BLACKBOARD_BIN`);
}

const START_MS = 30_000;
const CONNECTIONS = 32;

export class Server {
  static async start(path) {
    const server = new Server();
    server.agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
    server.data = await mkdtemp(join(tmpdir(), "blackboard-bench-"));
    server.child = spawn(path, ["serve", "--listen", "127.0.0.1:0", "--data", server.data], { stdio: ["ignore", "pipe", "pipe"] });
    try {
      server.url = await server.listening();
    } catch (error) {
      await server.stop();
      throw error;
    }
    return server;
  }

  listening() {
    let said = "";
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`the server did not start: ${said}`)), START_MS);
      const read = (bytes) => {
        if (this.url) return;
        said += bytes;
        const url = /"message":"listening".*?"url":"([^"]+)"/.exec(said)?.[1];
        if (!url) return;
        clearTimeout(late);
        resolve(url);
      };
      this.child.stdout.on("data", read);
      this.child.stderr.on("data", read);
      this.child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    });
  }

  async stop() {
    this.agent.destroy();
    if (this.child.exitCode === null) {
      const gone = new Promise((resolve) => this.child.once("exit", resolve));
      this.child.kill();
      await gone;
    }
    await rm(this.data, { recursive: true, force: true });
  }

  /** Sends a request; a refusal is an error. A body of bytes is a PNG, any other is sent as JSON. */
  send(method, path, body, agent) {
    const isImage = body instanceof Uint8Array;
    const bytes = isImage ? body : Buffer.from(JSON.stringify(body));
    const headers = { "Content-Type": isImage ? "image/png" : "application/json", "Content-Length": bytes.length };
    if (agent) headers["X-Agent-ID"] = agent;
    return new Promise((resolve, reject) => {
      const sent = request(this.url + path, { method, headers, agent: this.agent }, (answer) => {
        let text = "";
        answer.setEncoding("utf8");
        answer.on("data", (part) => (text += part));
        answer.on("end", () => (answer.statusCode < 300 ? resolve() : reject(new Error(`${method} ${path}: ${answer.statusCode} ${text}`))));
      });
      sent.on("error", reject);
      sent.end(bytes);
    });
  }
}
