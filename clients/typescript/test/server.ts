/**
 * Server under test: the real one, on a free port, with a new directory.
 */

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { TestContext } from "node:test";
import { fileURLToPath } from "node:url";

import { createClient } from "agent-blackboard";
import type { Client, ClientOptions } from "agent-blackboard";

export const root = fileURLToPath(new URL("..", import.meta.url));

const binary = process.env["BLACKBOARD_BIN"] ?? join(root, "../../target/debug/blackboard");

/** A server, started again on the same port and data after it was killed. */
export class BoardServer {
  readonly home = mkdtempSync(join(tmpdir(), "blackboard-typescript-"));
  url = "http://127.0.0.1:0";
  #process: ChildProcess | undefined;

  constructor(readonly flags: readonly string[] = []) {
    assert(existsSync(binary), `There is no ${binary}: cargo build makes it, or BLACKBOARD_BIN tells where it is`);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get data(): string {
    return join(this.home, "data");
  }

  get isRunning(): boolean {
    const process = this.#process;
    return process !== undefined && process.exitCode === null && process.signalCode === null;
  }

  async start(): Promise<void> {
    const listen = `127.0.0.1:${this.port}`;
    const flags = ["serve", "--listen", listen, "--data", this.data, "--log", "info", ...this.flags];
    const process = spawn(binary, flags, { stdio: ["ignore", "pipe", "inherit"] });
    this.#process = process;
    for await (const line of createInterface(process.stdout)) {
      if (!line.includes('"message":"listening"')) continue;
      this.url = (JSON.parse(line) as { url: string }).url;
      process.stdout.resume();
      return;
    }
    throw new Error("the server ended before it listened");
  }

  async kill(signal: "SIGKILL" | "SIGTERM" = "SIGKILL"): Promise<void> {
    const process = this.#process;
    if (process === undefined || !this.isRunning) return;
    const ended = once(process, "exit");
    process.kill(signal);
    await ended;
  }

  /** Creates a token, by the owner of the data. */
  token(name: string, ...flags: string[]): string {
    const command = ["token", "create", "--data", this.data, "--name", name, ...flags];
    return execFileSync(binary, command, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] }).trim();
  }

  revoke(name: string): void {
    execFileSync(binary, ["token", "revoke", "--data", this.data, name], { stdio: "ignore" });
  }

  client(options: Partial<ClientOptions> = {}): Client {
    return createClient({ url: this.url, ...options });
  }
}

/** Starts a server that ends with the test. */
export async function startServer(test: TestContext, ...flags: string[]): Promise<BoardServer> {
  const server = new BoardServer(flags);
  test.after(async () => {
    await server.kill();
    rmSync(server.home, { recursive: true, force: true });
  });
  await server.start();
  return server;
}

/** Appends `{n: from}` to `{n: to - 1}`, one after another. */
export async function append(client: Client, session: string, from: number, to: number): Promise<void> {
  for (let n = from; n < to; n += 1) {
    await client.POST("/v1/sessions/{session}/trajectories", { params: { path: { session } }, body: { n } });
  }
}

/** Returns the items of the trajectories. */
export async function steps(client: Client, session: string): Promise<Record<string, unknown>[]> {
  const items: Record<string, unknown>[] = [];
  for (let after = 0; ;) {
    const { data } = await client.GET("/v1/sessions/{session}/trajectories", {
      params: { path: { session }, query: { after, limit: 1000 } },
    });
    items.push(...data.entries.map(({ item }) => item));
    if (!data.more) return items;
    after = data.next;
  }
}

/** Returns the whole numbers before one. */
export function numbers(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n);
}

/** Returns a promise and what resolves it. */
export function signalled(): { promise: Promise<void>; resolve: () => void } {
  let resolve = () => {};
  const promise = new Promise<void>((resolved) => (resolve = resolved));
  return { promise, resolve };
}

/** Waits until a signal is aborted, if it is not yet. */
export async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, "abort");
}
