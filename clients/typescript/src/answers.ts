/**
 * Bodies of answers, read whole and in the wanted form; refusals as errors.
 *
 * Each answer is a Blackboard's or an error: HTML, a redirect and broken JSON are never data.
 */

import { NotModified, Problem, UnexpectedAnswer } from "./errors.js";
import type { ProblemBody } from "./errors.js";

/** The form in which an answer is wanted. */
export type ParseAs = "json" | "text" | "blob" | "arrayBuffer" | "stream";

/** Statuses of proxies in front of a server that a retry can help. */
const RETRYABLE = new Set([408, 429, 502, 503, 504]);

/** Characters of a foreign answer in an error's message. */
const EXCERPT_MAX = 120;

/** Returns a successful answer's body, or throws what the answer says. */
export async function read(response: Response, parseAs: ParseAs): Promise<unknown> {
  if (response.status === 304) throw new NotModified(response);
  if (!response.ok) throw await refusal(response);
  if (response.status === 204) return undefined;
  if (parseAs === "stream") return response.body;
  if (parseAs !== "json") return response[parseAs]();
  if (!/^application\/([^;]+\+)?json\b/i.test(contentType(response))) {
    throw await unexpected(
      response,
      "not JSON; ask for another form with 'parseAs', or check that the address is a Blackboard's",
    );
  }
  return parse(await response.text(), response);
}

async function refusal(response: Response): Promise<Error> {
  if (contentType(response).startsWith("application/problem+json")) {
    const text = await response.text();
    const body = parse(text, response) as (ProblemBody & Record<string, unknown>) | null;
    if (typeof body?.code === "string" && typeof body.detail === "string") return new Problem(body, response);
    return unexpected(response, "not a problem with a code; check that the address is a Blackboard's", text);
  }
  if (response.type === "opaqueredirect" || (response.status >= 300 && response.status < 400)) {
    const to = response.headers.get("Location") ?? "another address";
    return unexpected(response, `a redirect to ${to}; a Blackboard never redirects, so give its own address`);
  }
  return unexpected(response, "not a problem document; check that the address is a Blackboard's");
}

function parse(text: string, response: Response): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // A proxy may have cut an answer whose length nobody told.
    const told = `${place(response)} is incomplete JSON: it ends with ${quote(text.slice(-EXCERPT_MAX))}`;
    throw new UnexpectedAnswer(told, response, { retryable: true });
  }
}

async function unexpected(response: Response, detail: string, text?: string): Promise<UnexpectedAnswer> {
  const kind = contentType(response) || "no content type";
  const begins = quote((text ?? (await beginning(response))).slice(0, EXCERPT_MAX));
  const told = `${place(response)} is ${response.status} with ${kind}, ${detail}: ${begins}`;
  return new UnexpectedAnswer(told, response, { retryable: RETRYABLE.has(response.status) });
}

/** Returns how the body begins, and closes it. */
async function beginning(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const first = await reader?.read();
  await reader?.cancel();
  return new TextDecoder().decode(first?.value);
}

function quote(text: string): string {
  return JSON.stringify(text.replaceAll(/\s+/g, " ").trim());
}

function place(response: Response): string {
  return response.url === "" ? "the answer" : `the answer of ${response.url.replace(/\?.*/, "")}`;
}

function contentType(response: Response): string {
  return response.headers.get("Content-Type") ?? "";
}
