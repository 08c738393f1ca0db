/**
 * Networks between client and server: proxies that cut connections and change answers, and foreign servers.
 */

import { once } from "node:events";
import { createServer as createProxy, request } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { connect } from "node:net";
import type { TestContext } from "node:test";

/** Starts a TCP server that ends with the test, and returns its address. */
async function listen(test: TestContext, serve: (socket: Socket) => void): Promise<string> {
  const open = new Set<Socket>();
  const server: Server = createServer((socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    socket.on("error", () => socket.destroy());
    serve(socket);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  test.after(() => {
    server.close();
    for (const socket of open) socket.destroy();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** A server that gives these bytes for each request and closes; it counts the requests. */
export async function startForeign(
  test: TestContext,
  answer: (path: string, count: number) => string,
): Promise<{ url: string; heads: string[] }> {
  const heads: string[] = [];
  const url = await listen(test, (socket) => {
    let head = "";
    socket.on("data", (bytes) => {
      head += bytes.toString("latin1");
      if (!head.includes("\r\n\r\n") || socket.writableEnded) return;
      heads.push(head);
      socket.end(answer(head.split(" ")[1] ?? "", heads.length));
    });
  });
  return { url, heads };
}

/** An answer over HTTP, complete unless its length says otherwise. */
export function http(status: string, type: string, body: string, headers: string[] = []): string {
  const length = `Content-Length: ${Buffer.byteLength(body)}`;
  const lines = [`HTTP/1.1 ${status}`, `Content-Type: ${type}`, "Connection: close", length, ...headers];
  // The last of two lengths is the one that is meant.
  const unique = new Map(lines.map((line) => [line.split(":")[0], line]));
  return `${[...unique.values()].join("\r\n")}\r\n\r\n${body}`;
}

/** The answer of `GET /` as the server gives it. */
export function greeting(name = "blackboard", version = "0.1.0"): string {
  return http("200 OK", "application/json", `${JSON.stringify({ name, version, docs: "/docs/" })}\n`);
}

/**
 * Starts a proxy that cuts connections by chance, with a fixed seed: before a request passes, after it has passed
 * and before the answer does, and in the middle of an answer.
 */
export async function startCuttingProxy(
  test: TestContext,
  port: number,
  share: number,
): Promise<{ url: string; cuts: () => number }> {
  let cuts = 0;
  const chance = generator(0x5eed);
  const url = await listen(test, (socket) => {
    const upstream = connect(port, "127.0.0.1");
    const cut = () => {
      cuts += 1;
      socket.destroy();
      upstream.destroy();
    };
    upstream.on("error", () => socket.destroy());
    upstream.on("close", () => socket.destroy());
    socket.on("close", () => upstream.destroy());
    socket.on("data", (bytes) => (chance() < share / 3 ? cut() : upstream.write(bytes)));
    upstream.on("data", (bytes) => {
      const drawn = chance();
      if (drawn < share / 3) cut();
      else if (drawn < (share / 3) * 2) socket.write(bytes.subarray(0, bytes.length / 2), cut);
      else socket.write(bytes);
    });
  });
  return { url, cuts: () => cuts };
}

/** Numbers from 0 to 1, the same in each run (mulberry32). */
function generator(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What a reverse proxy does to requests and answers. */
export interface Habits {
  /** Ends a wait that has had no answer for 0.3 s: by this status, or by closing the connection. */
  cut?: 504 | "close";
  /** Rejects a request with this status before the server sees it. */
  reject?: (request: IncomingMessage) => 502 | 503 | 504 | undefined;
  /** Closes the connection instead of passing on an answer. */
  lose?: (request: IncomingMessage, status: number) => boolean;
  /** Changes the headers of an answer. */
  change?: (headers: IncomingHttpHeaders) => IncomingHttpHeaders;
}

const CUT_MS = 300;

/** Starts a reverse proxy over HTTP, which keeps the requests that it saw. */
export async function startProxy(
  test: TestContext,
  port: number,
  habits: Habits = {},
): Promise<{ url: string; seen: IncomingMessage[]; cuts: () => number }> {
  const seen: IncomingMessage[] = [];
  let cuts = 0;
  const page = (status: number, to: ServerResponse) =>
    to.writeHead(status, { "Content-Type": "text/html" }).end(`<html><h1>${status}</h1></html>`);
  const proxy = createProxy((from, to) => {
    seen.push(from);
    const rejected = habits.reject?.(from);
    if (rejected !== undefined) return page(rejected, to);
    const { url, method, headers } = from;
    const upstream = request({ host: "127.0.0.1", port, path: url, method, headers, agent: false });
    const end = (status?: number) => {
      clearTimeout(timer);
      upstream.destroy();
      return status === undefined ? to.destroy() : page(status, to);
    };
    const cut = () => {
      cuts += 1;
      end(habits.cut === 504 ? 504 : undefined);
    };
    // Other requests may take longer than that on a slow machine.
    const isWait = url?.includes("wait=") === true;
    const timer = habits.cut !== undefined && isWait ? setTimeout(cut, CUT_MS) : undefined;
    upstream.on("error", () => to.headersSent || to.destroyed || end(502));
    upstream.on("response", (answer) => {
      clearTimeout(timer);
      if (habits.lose?.(from, answer.statusCode ?? 0)) return end();
      to.writeHead(answer.statusCode ?? 0, habits.change?.(answer.headers) ?? answer.headers);
      return answer.pipe(to);
    });
    to.on("close", () => end());
    return from.pipe(upstream);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  test.after(() => {
    proxy.close();
    proxy.closeAllConnections();
  });
  return { url: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`, seen, cuts: () => cuts };
}
