/**
 * The client: every route of the API with its types, and what takes more than one request.
 */

import openapi from "openapi-fetch";
import type { FetchOptions, FetchResponse } from "openapi-fetch";
import type { FilterKeys, HttpMethod, PathsWithMethod, RequiredKeysOf } from "openapi-typescript-helpers";

import type { ParseAs } from "./answers.js";
import { UnsupportedValue } from "./errors.js";
import { followEvents } from "./events.js";
import type { BoardEvent, EventsOptions, ResyncEvent } from "./events.js";
import { jsonText } from "./json.js";
import { encodeName, serializePath, serializeQuery } from "./names.js";
import { ask } from "./questions.js";
import type { Answered, AskOptions } from "./questions.js";
import { claimNext } from "./requests.js";
import type { ClaimOptions, Outcome, Work } from "./requests.js";
import type { paths } from "./schema.js";
import { sessionOf } from "./session.js";
import type { Session } from "./session.js";
import { updateState } from "./state.js";
import type { Updated, UpdateOptions } from "./state.js";
import type { StatePath } from "./names.js";
import { Transport } from "./transport.js";
import type { Received, Server, ServerDescription } from "./transport.js";
import { waits } from "./waits.js";
import type { Waits } from "./waits.js";

export interface ClientOptions {
  /** The server's address, such as `http://127.0.0.1:8733`; a path before `/v1` is kept. */
  url: string | URL;
  /** A token made by `blackboard token create`. */
  token?: string | undefined;
  /** The name of the agent that writes; a token bound to an agent overrides it. */
  agent?: string | undefined;
  /** Used instead of the platform's `fetch`. */
  fetch?: typeof globalThis.fetch | undefined;
  /**
   * The limit of one call with its retries, in milliseconds; one try has half of it, and a `wait` is added to both.
   * 30,000 by default; `Infinity` is none.
   */
  timeoutMs?: number | undefined;
}

/** Parameters, body and options of a call, as in openapi-fetch. */
type Init<Operation, Choice> =
  RequiredKeysOf<FetchOptions<Operation>> extends never
    ? [init?: FetchOptions<Operation> & Choice]
    : [init: FetchOptions<Operation> & Choice];

/** The options that the type of an answer depends on. */
interface Choice<As, Until> {
  parseAs?: As;
  params?: { query?: { until?: Until } };
}

/** A successful answer. A read has no content only if it waited for an absence. */
type Answer<Method, As, Until, Result> = Result extends { data: infer Data }
  ? {
      data: As extends "json" ? (Method extends "get" ? Present<Until, Data> : Data) : Data;
      response: Response;
    }
  : never;

type Present<Until, Data> = "absent" extends Until ? Data : Exclude<Data, undefined>;

/** A method on any route that has it. Refusals are thrown, so `data` is there. */
export type Call<Method extends HttpMethod> = <
  Path extends PathsWithMethod<paths, Method>,
  As extends ParseAs = "json",
  Until extends string = never,
>(
  path: Path,
  ...init: Init<FilterKeys<paths[Path], Method>, Choice<As, Until>>
) => Promise<
  Answer<Method, As, Until, FetchResponse<Fixed<FilterKeys<paths[Path], Method>>, { parseAs: As }, "application/json">>
>;

type Fixed<Operation> = Operation & Record<string, unknown>;

/** The routes. */
export interface Api {
  GET: Call<"get">;
  PUT: Call<"put">;
  POST: Call<"post">;
  PATCH: Call<"patch">;
  DELETE: Call<"delete">;
}

export interface Client extends Api {
  /** The server's address. */
  readonly url: string;
  /** Asks the server for its name and version; throws `IncompatibleServer` if this client does not know them. */
  server(): Promise<ServerDescription>;
  /** Returns a client with other options and the same server. */
  withOptions(options: Partial<Omit<ClientOptions, "url">>): Client;
  /**
   * Follows a session's commits: each once and in order, also when the connection or the server breaks in between.
   * Without `after` it begins with the commits after its first request, which the first `next()` sends. Commits that
   * are not retained are a `HistoryGap`, unless `onGap` says otherwise.
   */
  events(session: string, options?: EventsOptions & { onGap?: "throw" | undefined }): AsyncGenerator<BoardEvent, never>;
  events(session: string, options: EventsOptions): AsyncGenerator<BoardEvent | ResyncEvent, never>;
  /** Asks a question and waits for its answer. */
  ask(session: string, question: string | Record<string, unknown>, options?: AskOptions): Promise<Answered>;
  /**
   * Claims the next request that matches and works on it: the claim is renewed while the work goes on, and then the
   * request is done with the work's result, or has failed with its error. `undefined` if none came in time.
   */
  claimNext<Result>(session: string, options: ClaimOptions, work: Work<Result>): Promise<Outcome<Result> | undefined>;
  /**
   * Reads a value of the state, `undefined` if there is none, calls the function with it, and writes what it
   * returns, if the value is still the one that was read; otherwise again.
   */
  updateState<Value = unknown>(
    session: string,
    path: StatePath,
    update: (value: Value | undefined) => Value | Promise<Value>,
    options?: UpdateOptions,
  ): Promise<Updated<Value>>;
  /** Returns a session with its requests, its messages, and what waits for an agent. No request is made. */
  session(name: string): Session;
  /** Waits for an answer, a request's end, a value of the state, a log's next entries, or what waits for an agent. */
  readonly waitFor: Waits;
}

const TIMEOUT_MS = 30_000;

/** Creates a client. No request is made. */
export function createClient(options: ClientOptions): Client {
  return connect(options, { url: address(options.url) });
}

function connect(options: ClientOptions, server: Server): Client {
  const { fetch = (...request) => globalThis.fetch(...request), timeoutMs = TIMEOUT_MS } = options;
  if (!(timeoutMs > 0)) throw new UnsupportedValue(`timeoutMs is ${timeoutMs}; give a positive number of milliseconds`);
  const transport = new Transport(server, fetch, timeoutMs);
  const api = routes(transport, headers(options));
  const waitFor = waits(api);
  return {
    ...api,
    url: server.url,
    server: () => transport.describe(),
    withOptions: (changes) => connect({ ...options, ...changes }, server),
    events: (session: string, options?: EventsOptions) =>
      followEvents(api, session, options) as AsyncGenerator<BoardEvent, never>,
    ask: (session, question, options) => ask(api, waitFor, session, question, options),
    claimNext: (session, options, work) => claimNext(api, session, timeoutMs, options, work),
    session: (name) => sessionOf(api, name, timeoutMs, options.agent),
    updateState: (session, path, update, options) => updateState(api, session, path, update, options),
    waitFor,
  };
}

/** Returns the routes' methods: openapi-fetch makes the requests, the transport sends them. */
function routes(transport: Transport, headers: Record<string, string>): Api {
  const inner = openapi<paths>({
    baseUrl: transport.server.url,
    headers,
    bodySerializer,
    pathSerializer: serializePath,
    querySerializer: serializeQuery,
  });
  const call =
    (method: HttpMethod) =>
    async (path: string, init: CallInit = {}) => {
      if ("body" in init && init.body === undefined) jsonText(undefined);
      const { parseAs = "json", fetch = transport.fetch, isPiece } = init;
      let received: Received | undefined;
      const send = async (request: Request) => {
        received = await transport.send(request, parseAs, fetch, isPiece);
        return received.response;
      };
      const request = inner.request as (method: HttpMethod, path: string, init: object) => Promise<unknown>;
      // The transport has read the body already. A body that is a stream needs `duplex`.
      await request(method, path, { duplex: "half", ...init, fetch: send, parseAs: "stream" });
      return received;
    };
  const api = { GET: "get", PUT: "put", POST: "post", PATCH: "patch", DELETE: "delete" } as const;
  return Object.fromEntries(Object.entries(api).map(([name, method]) => [name, call(method)])) as unknown as Api;
}

interface CallInit {
  parseAs?: ParseAs;
  fetch?: typeof globalThis.fetch;
  body?: unknown;
  /** Set by waits. */
  isPiece?: boolean;
}

/** Sends bytes, forms and lines as they are, and all else as JSON. */
function bodySerializer(body: unknown, headers?: Headers): unknown {
  const type = headers?.get("Content-Type") ?? undefined;
  if (body instanceof FormData) return body;
  if (
    body instanceof Blob ||
    body instanceof ArrayBuffer ||
    body instanceof ReadableStream ||
    ArrayBuffer.isView(body)
  ) {
    if (type === undefined) throw new UnsupportedValue("bytes need their media type: give the header Content-Type");
    return body;
  }
  const isText = typeof body === "string" && type !== undefined && !/\bjson\b/.test(type);
  return isText ? body : jsonText(body);
}

function headers({ token, agent }: ClientOptions): Record<string, string> {
  if (token !== undefined && !/^[!-~]+$/.test(token)) {
    throw new UnsupportedValue("the token is empty or has invalid characters; check where it is read from");
  }
  return {
    ...(token === undefined ? {} : { Authorization: `Bearer ${token}` }),
    ...(agent === undefined ? {} : { "X-Agent-ID": encodeName(agent) }),
  };
}

function address(url: string | URL): string {
  const found = URL.canParse(url) ? new URL(url) : undefined;
  const isPlain = found && /^https?:$/.test(found.protocol) && !found.username && !found.search && !found.hash;
  if (!isPlain) {
    throw new UnsupportedValue("the url is not a server's address, such as http://127.0.0.1:8733");
  }
  return found.href.replace(/\/+$/, "");
}
