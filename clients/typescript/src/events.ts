/**
 * Events of a session by server-sent events, over any number of connections.
 *
 * Each commit after the cursor comes once and in order: a broken connection is resumed at the last revision that
 * was read, and only whole frames count as read. `fetch` is used, since an `EventSource` cannot send a token.
 */

import type { Api } from "./client.js";
import { BlackboardError, ConnectionFailed, HistoryGap, UnexpectedAnswer } from "./errors.js";
import type { components } from "./schema.js";
import { pauseMs, sleep, TIMER_MS_MAX } from "./time.js";

type Schemas = components["schemas"];

/** A commit. */
export type BoardEvent = { type: "commit"; kind: string } & Schemas["EventBody"];

/** A gap: the board at `revision` is to be read anew, and the events go on after it. */
export type ResyncEvent = { type: "resync"; kind: "resync" } & Schemas["ResyncBody"];

export interface EventsOptions {
  /** The last revision that was read; the session's present one by default. */
  after?: number | undefined;
  /** Only changes to these parts, such as `trajectories`, `state/tasks`, `agents`. */
  on?: readonly string[] | undefined;
  /** Only commits by this agent. */
  agent?: string | undefined;
  /**
   * Where commits after the cursor are not retained: `"throw"`, the default, ends the iteration by `HistoryGap`;
   * `"resync"` yields a `ResyncEvent` and goes on.
   */
  onGap?: "throw" | "resync" | undefined;
  /** Ends the iteration: `next()` throws its reason. */
  signal?: AbortSignal | undefined;
  /** Silence after which a connection counts as broken; the server sends a frame every 15 s. 45,000 by default. */
  silenceMs?: number | undefined;
}

const SILENCE_MS = 45_000;

/** Characters of a frame; the server's have at most 256 KiB of contents. */
const FRAME_MAX = 8 * 1024 * 1024;

/** One frame of a stream, as it was sent. */
interface Frame {
  id: string;
  event: string;
  data: string;
}

/**
 * Follows a session. The first connection must come about within the client's time limit; after that the server
 * is tried again for as long as it takes. Refusals that no retry can help are thrown.
 */
export async function* followEvents(
  api: Api,
  session: string,
  options: EventsOptions = {},
): AsyncGenerator<BoardEvent | ResyncEvent, never, void> {
  const { signal, onGap = "throw" } = options;
  let cursor = options.after;
  let isOpened = false;
  for (let failures = 0; ; failures += 1) {
    if (failures > 0) await sleep(pauseMs(failures), signal);
    const connection = new AbortController();
    const end = () => connection.abort(signal?.reason);
    signal?.addEventListener("abort", end);
    try {
      signal?.throwIfAborted();
      const { body, response } = await open(api, session, { ...options, after: cursor }, connection.signal);
      isOpened = true;
      cursor ??= Number(response.headers.get("Blackboard-Revision"));
      for await (const frame of frames(body, response, connection, options.silenceMs ?? SILENCE_MS)) {
        failures = 0;
        const event = eventOf(frame, response);
        const at = event?.revision ?? Number(frame.id);
        if (event?.type === "commit" && at <= cursor) continue;
        if (event?.type === "resync" && onGap === "throw") throw new HistoryGap(cursor, event);
        cursor = event?.type === "resync" ? at : Math.max(cursor, at);
        if (event !== undefined) yield event;
      }
    } catch (error) {
      signal?.throwIfAborted();
      const isFinal = !(error instanceof BlackboardError) || !error.retryable;
      if (isFinal || !isOpened) throw error;
    } finally {
      signal?.removeEventListener("abort", end);
      connection.abort();
    }
  }
}

/** Opens a stream. Its header `Blackboard-Revision` is the revision after which it begins. */
async function open(
  api: Api,
  session: string,
  { after, on, agent }: EventsOptions,
  signal: AbortSignal,
): Promise<{ body: ReadableStream<Uint8Array>; response: Response }> {
  const query = {
    ...(after === undefined ? {} : { after }),
    ...(on === undefined ? {} : { on: [...on] }),
    ...(agent === undefined ? {} : { agent }),
  };
  const { data, response } = await api.GET("/v1/sessions/{session}/events", {
    params: { path: { session }, query },
    headers: { Accept: "text/event-stream" },
    parseAs: "stream",
    signal,
  });
  const type = response.headers.get("Content-Type") ?? "no content type";
  if (data === null || !type.startsWith("text/event-stream")) {
    throw new UnexpectedAnswer(`${response.url} answered ${type}, not a stream of events`, response);
  }
  return { body: data, response };
}

/** Reads the frames of a stream. A frame that broke off is none. */
async function* frames(
  body: ReadableStream<Uint8Array>,
  response: Response,
  connection: AbortController,
  silenceMs: number,
): AsyncGenerator<Frame, void, void> {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await heard(reader, connection, silenceMs);
    if (done) return;
    const parts = (text + decoder.decode(value, { stream: true })).split("\n\n");
    text = parts.pop() ?? "";
    for (const part of parts) yield frameOf(part);
    if (text.length > FRAME_MAX) throw new UnexpectedAnswer("a frame of the stream of events has no end", response);
  }
}

/** Reads on; a read that fails or takes too long is the connection's end. */
async function heard(
  reader: ReadableStreamDefaultReader<Uint8Array>,
  connection: AbortController,
  silenceMs: number,
): Promise<ReadableStreamReadResult<Uint8Array>> {
  const timer = setTimeout(() => connection.abort(), Math.min(silenceMs, TIMER_MS_MAX));
  try {
    return await reader.read();
  } catch (error) {
    throw new ConnectionFailed("the stream of events broke off", { cause: error });
  } finally {
    clearTimeout(timer);
  }
}

/** The server writes each field once, on a line that ends with LF. */
function frameOf(text: string): Frame {
  const frame: Frame = { id: "", event: "", data: "" };
  for (const line of text.split("\n")) {
    const [, name, value] = /^(id|event|data): ?(.*)$/.exec(line) ?? [];
    if (name !== undefined) frame[name as keyof Frame] = value ?? "";
  }
  return frame;
}

/** Returns a frame's event; none of a frame that has only an id, or that is neither a commit nor a gap. */
function eventOf({ id, event, data }: Frame, response: Response): BoardEvent | ResyncEvent | undefined {
  if (data === "") return undefined;
  let body: unknown;
  try {
    body = JSON.parse(data);
  } catch {
    throw new UnexpectedAnswer(`the event '${event}' with the id '${id}' is not JSON`, response);
  }
  const { revision, changes } = Object(body) as Partial<Schemas["EventBody"]>;
  if (!Number.isSafeInteger(revision)) return undefined;
  if (event === "resync") return { type: event, kind: event, ...(body as Schemas["ResyncBody"]) };
  return Array.isArray(changes) ? { type: "commit", kind: event, ...(body as Schemas["EventBody"]) } : undefined;
}
