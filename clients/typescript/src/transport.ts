/**
 * Requests with retries, within a time limit.
 *
 * A write has one `Idempotency-Key` in all of its tries, so a retry after a lost answer never doubles it. Nothing,
 * the token included, is sent to a server that has not said by `GET /` that it is a Blackboard of a known version.
 */

import { read } from "./answers.js";
import type { ParseAs } from "./answers.js";
import { BlackboardError, ConnectionFailed, IncompatibleServer, Problem, UnexpectedAnswer } from "./errors.js";
import { Deadline, milliseconds, pauseMs, sleep, TIMER_MS_MAX } from "./time.js";

/** The server's versions that this client knows: all that begin so. A new contract needs a new client. */
const SERVER_VERSIONS = "0.1.";

export interface ServerDescription {
  name: string;
  version: string;
}

/** A server's address, and its description once it was asked. Clients made from one another share it. */
export interface Server {
  readonly url: string;
  description?: ServerDescription;
}

/** A successful answer, with its body read. */
export interface Received {
  data: unknown;
  response: Response;
}

export class Transport {
  constructor(
    readonly server: Server,
    readonly fetch: typeof globalThis.fetch,
    readonly timeoutMs: number,
  ) {}

  /**
   * Sends a request until it is answered. Throws the last try's error once the time limit is over. A piece of a wait is
   * sent once, since the wait itself goes on.
   */
  async send(request: Request, parseAs: ParseAs, fetch = this.fetch, isPiece = false): Promise<Received> {
    const { method, signal, headers } = request;
    const waitMs = milliseconds(new URL(request.url).searchParams.get("wait"));
    const isRead = method === "GET" || method === "HEAD";
    if (!isRead && !headers.has("Idempotency-Key")) headers.set("Idempotency-Key", newKey());
    // Held, so that each try can send it.
    const body = isRead ? null : await request.arrayBuffer();
    let mayBeCommitted = false;
    const once = async (signal: AbortSignal) => {
      this.server.description ??= await ask(this.server.url, fetch, signal);
      // A redirect is no answer of ours; followed, it would lose the token or turn a POST into a GET.
      const copy = new Request(request, { headers, body, signal, redirect: "manual" });
      try {
        const response = await fetch(copy);
        return { data: await read(response, parseAs), response };
      } catch (error) {
        mayBeCommitted = !isRefused(error, mayBeCommitted);
        throw error;
      }
    };
    const call = {
      subject: `${method} ${new URL(request.url).pathname}: ${this.server.url}`,
      limitMs: this.timeoutMs + waitMs,
      tryMs: this.timeoutMs / 2 + waitMs,
      signal,
      stays: parseAs === "stream",
    };
    const sent = isPiece ? within(call.tryMs, once, call) : retry(once, call);
    return sent.catch((error: unknown) => {
      const isUnknown = !isRead && mayBeCommitted && error instanceof BlackboardError;
      if (isUnknown) error.idempotencyKey = headers.get("Idempotency-Key") ?? undefined;
      throw error;
    });
  }

  /** Asks the server for its name and version, and throws if this client does not know them. */
  async describe(signal = new AbortController().signal): Promise<ServerDescription> {
    const { url } = this.server;
    const call = { subject: `GET /: ${url}`, limitMs: this.timeoutMs, tryMs: this.timeoutMs / 2, signal };
    this.server.description = await retry((signal) => ask(url, this.fetch, signal), call);
    return { ...this.server.description };
  }
}

/** A call of any number of tries. */
interface Call {
  /** Its name in an error. */
  subject: string;
  limitMs: number;
  /** The limit of one try: a connection that is silent leaves time for another. */
  tryMs: number;
  signal: AbortSignal;
  /** Whether the signal also ends what the call leaves open. */
  stays?: boolean;
}

/** Whether an error tells that a write was not committed, neither by this try nor by one before. */
function isRefused(error: unknown, mayBeCommitted: boolean): boolean {
  if (!(error instanceof Problem) || error.body["outcome"] === "unknown") return false;
  // These refusals come before the server looks for the key.
  const isEarly = error.retryable || error.status === 401 || error.status === 403;
  return !mayBeCommitted || !isEarly;
}

/** Tries until a try succeeds, fails for good, or the time limit is over. */
async function retry<T>(once: (signal: AbortSignal) => Promise<T>, call: Call): Promise<T> {
  const deadline = new Deadline(call.limitMs);
  let told: BlackboardError | undefined;
  for (let tries = 1; ; tries += 1) {
    try {
      return await within(Math.min(deadline.leftMs, call.tryMs), once, call);
    } catch (error) {
      if (!(error instanceof BlackboardError) || !error.retryable) throw error;
      // A last try that had no time for an answer tells less than the one before it.
      if (told === undefined || deadline.leftMs > 0) told = error;
      const pause = pauseMs(tries) + (error.retryAfterMs ?? 0);
      if (pause < deadline.leftMs) await sleep(pause, call.signal);
      else throw told instanceof ConnectionFailed ? late(told, call, tries) : told;
    }
  }
}

/** Tries once, at most for this time. All that is no error of ours is the connection's. */
async function within<T>(
  limitMs: number,
  once: (signal: AbortSignal) => Promise<T>,
  { signal, stays = false }: Call,
): Promise<T> {
  signal.throwIfAborted();
  const controller = new AbortController();
  const abort = () => controller.abort(signal.reason);
  const timer = setTimeout(() => controller.abort(), Math.min(Math.ceil(limitMs) + 1, TIMER_MS_MAX));
  signal.addEventListener("abort", abort);
  let isOpen = false;
  try {
    const result = await once(controller.signal);
    isOpen = stays;
    return result;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BlackboardError) throw error;
    throw new ConnectionFailed(controller.signal.aborted ? "no answer" : innermost(error), { cause: error });
  } finally {
    clearTimeout(timer);
    if (!isOpen) signal.removeEventListener("abort", abort);
  }
}

/** Asks who answers at an address. No token is sent. */
async function ask(url: string, fetch: typeof globalThis.fetch, signal: AbortSignal): Promise<ServerDescription> {
  const request = new Request(`${url}/`, { headers: { Accept: "application/json" }, signal, redirect: "manual" });
  const response = await fetch(request);
  const { name, version } = Object(await read(response, "json")) as Partial<ServerDescription>;
  if (typeof name !== "string" || typeof version !== "string") {
    throw new UnexpectedAnswer(`${url}/ has no server's name and version; is it a Blackboard server?`, response);
  }
  if (name !== "blackboard" || !version.startsWith(SERVER_VERSIONS)) {
    const wanted = `blackboard ${SERVER_VERSIONS}x`;
    throw new IncompatibleServer(`${url} is ${name} ${version}; this client needs ${wanted}`, name, version);
  }
  return { name, version };
}

function late(error: ConnectionFailed, { subject, limitMs }: Call, tries: number): ConnectionFailed {
  const page = "document" in globalThis ? "; is the page's origin in its --cors-origins?" : "";
  const told = `${subject} gave no complete answer within ${limitMs / 1000} s (${tries} tries): ${error.message}${page}`;
  return new ConnectionFailed(told, { cause: error.cause });
}

/** Returns the text of the error that caused the others: fetch's own says only that it failed. */
function innermost(error: unknown): string {
  let found = error;
  while (found instanceof Error && found.cause instanceof Error) found = found.cause;
  if (!(found instanceof Error)) return String(found);
  // Several addresses of one name fail with a code and without a text.
  return found.message || String((found as { code?: unknown }).code ?? found.name);
}

/** Returns an `Idempotency-Key` from a source that pages without TLS have too, which `randomUUID` is not. */
export function newKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
