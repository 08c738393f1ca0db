// Real server and real browser for each file of specs.
//
// BLACKBOARD_BIN names the server's binary, CHROMIUM the browser's. A spec fails on an error in the browser's console, and
// on a request to another origin.

import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { chromium } from "playwright-core";

const BINARY = process.env.BLACKBOARD_BIN ?? "target/debug/blackboard";
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";

/** The longest time for a server to start, and for a step of a spec. */
const START_MS = 30_000;
const STEP_MS = 60_000;

/** The path of a resource of a session. */
export function board(session, ...parts) {
  return ["/v1/sessions", ...[session, ...parts].map(encodeURIComponent)].join("/").replaceAll("%2F", "/");
}

/** A server on a free port with an empty data directory. */
export class Server {
  static async start(flags = []) {
    const server = new Server();
    server.flags = flags;
    server.data = await mkdtemp(join(tmpdir(), "blackboard-page-"));
    await server.run("127.0.0.1:0");
    return server;
  }

  async run(listen) {
    const child = spawn(BINARY, ["serve", "--listen", listen, "--data", this.data, ...this.flags], { stdio: ["ignore", "pipe", "pipe"] });
    this.child = child;
    let said = "";
    this.url = await new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`the server did not start: ${said}`)), START_MS);
      const read = (bytes) => {
        said += bytes;
        const url = /"message":"listening".*?"url":"([^"]+)"/.exec(said)?.[1];
        if (!url) return;
        clearTimeout(late);
        resolve(url);
      };
      child.stdout.on("data", read);
      child.stderr.on("data", read);
      child.on("exit", (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
    });
  }

  async end(signal = "SIGTERM") {
    const gone = new Promise((resolve) => this.child.once("exit", resolve));
    this.child.kill(signal);
    await gone;
  }

  /** Ends the server and starts it again on the same port. */
  async restart(signal = "SIGKILL") {
    await this.end(signal);
    await this.run(new URL(this.url).host);
  }

  async stop() {
    await this.end();
    await rm(this.data, { recursive: true });
  }

  /** Sends a request. Returns `{status, body, text, headers}`; a refusal is an error. */
  async call(method, path, body, headers = {}) {
    const raw = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    const answer = await fetch(this.url + path, {
      method,
      body: raw ? body : JSON.stringify(body),
      headers: { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...headers },
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path} ${answer.status} ${text}`);
    let parsed;
    try {
      parsed = JSON.parse(text);
    } catch {
      // Images and texts are no JSON.
    }
    return { status: answer.status, body: parsed, text, headers: answer.headers };
  }

  get(path, headers) { return this.call("GET", path, undefined, headers); }
  post(path, body, headers) { return this.call("POST", path, body, headers); }
  put(path, body, headers) { return this.call("PUT", path, body, headers); }
  patch(path, body, headers) { return this.call("PATCH", path, body, headers); }
  del(path, headers) { return this.call("DELETE", path, undefined, headers); }
}

let server;
let browser;

before(async () => {
  [server, browser] = await Promise.all([
    Server.start(),
    chromium.launch({ executablePath: CHROMIUM, args: ["--no-sandbox", "--disable-dev-shm-usage"] }),
  ]);
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Errors that the browser prints for answers that a spec provokes: the page shows each refusal by itself. */
const EXPECTED = /^Failed to load resource/;

/** A page of its own, with what went wrong in it. */
export async function visit({ viewport = { width: 1280, height: 800 }, colorScheme = "light", of = server, ...options } = {}) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(STEP_MS);
  const wrong = [];
  page.on("pageerror", (error) => wrong.push(error.stack ?? String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !EXPECTED.test(message.text())) wrong.push(message.text());
  });
  page.on("request", (request) => {
    if (!/^(blob|data):/.test(request.url()) && new URL(request.url()).origin !== of.url) wrong.push(`a request to ${request.url()}`);
  });
  const go = async (hash) => {
    await page.goto(`${of.url}/ui/${hash}`);
    await page.locator(".shell").waitFor();
  };
  const text = (one) => (typeof one === "string" ? page.locator(one) : one).innerText();
  return { context, page, go, text, wrong };
}

/** Runs a spec with `{server, page, context, go, text}`. */
export function describe(title, run, options) {
  test(title, async () => {
    const visitor = await visit(options);
    try {
      await run({ server, ...visitor });
    } catch (error) {
      if (process.env.FAILURES) await visitor.page.screenshot({ path: join(process.env.FAILURES, `${title.replaceAll(/\W+/g, "-")}.png`) });
      throw error;
    } finally {
      await visitor.context.close();
    }
    if (visitor.wrong.length > 0) throw new Error(visitor.wrong.join("\n"));
  });
}
