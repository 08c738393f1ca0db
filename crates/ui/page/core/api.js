// The HTTP API as the page uses it: one function for requests, and the paths of resources.

import { signal } from "./dom.js";
import { parseExact } from "./json.js";
import { givenName } from "./settings.js";

/** The longest time for an answer, waits aside. */
const REQUEST_MS_MAX = 30_000;

/** True while the server asks for a token that the page does not have. */
export const needsLogin = signal(false);

/** A refusal of the server (RFC 9457), or a server that was not reached (`status` 0). */
export class Problem extends Error {
  constructor(status, body, fallback) {
    super(body?.detail ?? body?.title ?? fallback ?? `the server answered ${status}`);
    this.name = "Problem";
    this.status = status;
    this.code = body?.code ?? (status === 0 ? "unreachable" : "unknown");
    this.body = body;
  }

  /** The present value of the resource where the refusal has it. */
  get current() {
    return this.body?.current;
  }
}

/** The path of a resource of a session; each part is percent-encoded. */
export function board(session, ...parts) {
  return ["/v1/sessions", session, ...parts].map((part, i) => (i === 0 ? part : encodeURIComponent(part))).join("/");
}

/** The path of a log: `requests`, `agents/NAME/memory` or `agents/NAME/messages`. */
export function logPath(session, log) {
  const [, agent, name] = /^agents\/(.*)\/(\w+)$/s.exec(log) ?? [];
  return agent === undefined ? board(session, log) : board(session, "agents", agent, name);
}

/** The path of a value in the state, by its text form (`plan/a~1b`). */
export function statePath(session, path) {
  return path === "" ? board(session, "state") : board(session, "state", ...path.split("/"));
}

/** A path with a query; undefined and null values are left out. */
export function withQuery(path, query = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null) params.set(name, String(value));
  }
  const text = params.toString();
  return text ? `${path}?${text}` : path;
}

/**
 * Sends a request. Returns `{status, body, text, etag, revision, headers}`, where `body` is the parsed JSON; throws a
 * [`Problem`] for any other status than 2xx.
 *
 * `options`: `query`, `body` (sent as JSON), `text` (sent as it is), `type`, `headers`, `signal`, `accept`, `timeout`, `cache`
 * ("no-store" for answers that change without their tag, as `seen=true`), `as` (the name of a write, unless it is one's own).
 */
export async function request(method, path, options = {}) {
  const headers = new Headers(options.headers);
  headers.set("Accept", options.accept ?? "application/json");
  // The token's agent is known to the server, and nothing else would be taken for it.
  const name = rights.peek().agent === undefined ? options.as ?? givenName() : "";
  if (name !== "" && method !== "GET" && path.startsWith("/v1/")) headers.set("X-Agent-ID", encodeURIComponent(name));
  let sent;
  if (options.text !== undefined || options.body !== undefined) {
    sent = options.text ?? JSON.stringify(options.body);
    headers.set("Content-Type", options.type ?? "application/json");
  }
  const limit = AbortSignal.timeout(options.timeout ?? REQUEST_MS_MAX);
  const aborted = options.signal ? AbortSignal.any([options.signal, limit]) : limit;
  let response;
  let text;
  try {
    response = await fetch(withQuery(path, options.query), { method, headers, body: sent, signal: aborted, cache: options.cache, credentials: "same-origin" });
    text = await response.text();
  } catch (error) {
    if (options.signal?.aborted) throw error;
    throw new Problem(0, undefined, limit.aborted ? "the server did not answer in time" : "the server cannot be reached");
  }
  if (!response.ok) {
    if (response.status === 401) needsLogin.value = true;
    throw new Problem(response.status, parsed(text));
  }
  const revision = Number(response.headers.get("Blackboard-Revision") ?? NaN);
  return {
    status: response.status,
    body: isJson(response) ? parsed(text) : undefined,
    text,
    etag: response.headers.get("ETag"),
    revision: Number.isNaN(revision) ? undefined : revision,
    headers: response.headers,
  };
}

export const get = (path, options) => request("GET", path, options);
export const put = (path, body, options) => request("PUT", path, { ...options, body });
export const post = (path, body, options) => request("POST", path, { ...options, body });
export const patch = (path, body, options) => request("PATCH", path, { ...options, body });
export const remove = (path, options) => request("DELETE", path, options);

/** A curl command that gets a path of this server, or sends it `body` as JSON, or an image by the name of its file. */
export function curl(path, { method = "GET", body, image } = {}) {
  const url = quoted(new URL(path, location.origin).href);
  const token = rights.peek().tokensRequired ? ` -H "Authorization: Bearer $BLACKBOARD_TOKEN"` : "";
  const verb = method === "GET" || method === "POST" ? "" : ` -X ${method}`;
  const data = image ? ` -H 'Content-Type: image/png' --data-binary @${image}` : body === undefined ? "" : ` --json ${quoted(JSON.stringify(body))}`;
  return `curl -sS${verb}${token}${data} ${url}`;
}

/** The rights of the page: whether it may write, and under which agent's name. */
export const rights = signal({ known: false, tokensRequired: false, login: undefined, mayWrite: true, mayReadMemories: true, isAdmin: true });

/** The name under which the page writes: the token's agent, or else what the person gave; "" if there is none. */
export function writer() {
  return rights.value.agent ?? givenName();
}

/** Asks the server for the page's rights. */
export async function loadRights() {
  let said;
  try {
    said = (await get("/ui/session")).body;
  } catch (error) {
    if (error.status !== 404) throw error;
    said = { tokens_required: false, login: null };
  }
  const token = said.login?.token;
  const scopes = token?.scopes ?? [];
  const open = !said.tokens_required;
  const isAdmin = open || scopes.includes("admin");
  rights.value = {
    known: true,
    tokensRequired: said.tokens_required,
    login: said.login ?? undefined,
    mayWrite: isAdmin || scopes.includes("write"),
    mayReadMemories: isAdmin || scopes.includes("memory:read"),
    agent: token?.agent,
    isAdmin,
  };
  needsLogin.value = said.tokens_required && !said.login;
}

function isJson(response) {
  return /^application\/([\w.+-]+\+)?json\b/.test(response.headers.get("Content-Type") ?? "");
}

function parsed(text) {
  try {
    return parseExact(text);
  } catch {
    return undefined;
  }
}

function quoted(text) {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
