// Server-sent events over fetch: unlike EventSource it tells a refusal from a broken connection.

import { Problem, needsLogin, withQuery } from "./api.js";
import { parseExact } from "./json.js";

/** Waits between attempts, each with up to half of it more by chance. */
const RETRY_MS = [250, 500, 1000, 2000, 4000, 8000, 15_000];

/** A stream without a byte for so long is dead: the server sends a frame each 15 s. */
const SILENCE_MS = 40_000;

/** The most characters of one event; a longer one breaks the stream. */
const EVENT_CHARS_MAX = 4 << 20;

/**
 * Follows a stream until `signal` aborts. After a broken connection it opens it again from `cursor()`.
 * Throws the [`Problem`] of a refusal that a retry does not help.
 */
export async function events(path, { cursor, signal, onState, onCursor, onEvent }) {
  let failures = 0;
  while (!signal.aborted) {
    try {
      onState(failures === 0 ? "connecting" : "retrying");
      await follow(path, cursor?.(), signal, () => {
        failures = 0;
        onState("live");
      }, onCursor, onEvent);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && error.status >= 400 && error.status < 500 && ![408, 425, 429].includes(error.status)) {
        if (error.status === 401) needsLogin.value = true;
        throw error;
      }
    }
    if (signal.aborted) return;
    const wait = RETRY_MS[Math.min(failures, RETRY_MS.length - 1)] * (1 + Math.random() / 2);
    failures += 1;
    onState("retrying", Date.now() + wait);
    await pause(wait, signal);
  }
}

async function follow(path, after, signal, opened, onCursor, onEvent) {
  const stop = new AbortController();
  const abort = () => stop.abort();
  signal.addEventListener("abort", abort);
  let silence = setTimeout(abort, SILENCE_MS);
  try {
    const response = await fetch(withQuery(path, { after }), {
      headers: { Accept: "text/event-stream" },
      signal: stop.signal,
      cache: "no-store",
      credentials: "same-origin",
    });
    if (!response.ok) {
      throw new Problem(response.status, await response.json().catch(() => undefined));
    }
    opened();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const parser = new EventParser(onCursor, onEvent);
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(silence);
      silence = setTimeout(abort, SILENCE_MS);
      await parser.push(value);
    }
  } finally {
    clearTimeout(silence);
    signal.removeEventListener("abort", abort);
    stop.abort();
  }
}

/** Parses the event stream's text (WHATWG HTML, 9.2.6). */
export class EventParser {
  constructor(onCursor, onEvent) {
    this.onCursor = onCursor;
    this.onEvent = onEvent;
    this.rest = "";
  }

  async push(text) {
    this.rest += text;
    if (this.rest.length > EVENT_CHARS_MAX) throw new Error("an event is too long");
    for (let end = this.rest.indexOf("\n\n"); end >= 0; end = this.rest.indexOf("\n\n")) {
      const frame = this.rest.slice(0, end);
      this.rest = this.rest.slice(end + 2);
      await this.frame(frame);
    }
  }

  async frame(text) {
    let name = "message";
    let id;
    const data = [];
    for (const line of text.split("\n")) {
      const colon = line.indexOf(":");
      const field = colon < 0 ? line : line.slice(0, colon);
      const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "event") name = value;
      else if (field === "id") id = Number(value);
      else if (field === "data") data.push(value);
    }
    if (data.length > 0) await this.onEvent(name, parseExact(data.join("\n")));
    if (id !== undefined && !Number.isNaN(id)) this.onCursor?.(id);
  }
}

function pause(ms, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      resolve();
    }, { once: true });
  });
}
