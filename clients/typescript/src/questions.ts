/**
 * Questions to a person, with their answers.
 */

import type { Api } from "./client.js";
import { duration } from "./time.js";
import type { Entry, WaitOptions, Waits } from "./waits.js";

export interface AskOptions extends WaitOptions {
  /** The time after which `default` becomes the answer, in milliseconds; none by default. */
  expiresMs?: number | undefined;
  /** The answer of an expired question. */
  default?: string | undefined;
  /** Choices that a form offers. Any answer counts, unless `strictOptions` is set. */
  options?: readonly string[] | undefined;
  /** Whether an answer must be one of `options`. */
  strictOptions?: boolean | undefined;
}

/** A question that needs no answer any more. */
export interface Answered {
  seq: number;
  /** The answer; null if the question was skipped, or expired without a default. */
  answer: string | null;
  skipped: boolean;
  expired: boolean;
  entry: Entry;
}

/** Asks and waits. Once `limitMs` is over, the question stays open: its seq is `current.seq` of the problem. */
export async function ask(
  api: Api,
  waitFor: Waits,
  session: string,
  question: string | Record<string, unknown>,
  options: AskOptions = {},
): Promise<Answered> {
  const query = {
    ...(options.expiresMs === undefined ? {} : { expires: duration(options.expiresMs) }),
    ...(options.default === undefined ? {} : { default: options.default }),
  };
  const item = {
    ...(typeof question === "string" ? { question } : question),
    ...(options.options === undefined ? {} : { options: options.options }),
    ...(options.strictOptions === undefined ? {} : { strict_options: options.strictOptions }),
  };
  const { data } = await api.POST("/v1/sessions/{session}/questions", {
    params: { path: { session }, query },
    body: item,
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  });
  const entry = await waitFor.answer(session, data.entries?.[0]?.seq ?? 0, options);
  const { answer, skipped, expired } = entry.item;
  return {
    seq: entry.seq,
    answer: typeof answer === "string" ? answer : null,
    skipped: skipped === true,
    expired: expired === true,
    entry,
  };
}
