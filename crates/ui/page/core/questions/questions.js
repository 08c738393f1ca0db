// Questions as people answer them: their options, their ends, and those answered on this page.

import { board, get, put } from "../api.js";
import { signal } from "../dom.js";
import { keepDraft } from "../drafts.js";
import { keyOf } from "../inbox.js";
import { numberOf } from "../json.js";
import { member } from "../timeline.js";

/** The options of one question that become buttons. */
export const OPTIONS_MAX = 20;

/** The answers of this page that it remembers. */
const ANSWERED_MAX = 20;

/** What was answered on this page, the last first: `{session, seq, at, question, answer, skipped}`. */
export const answeredHere = signal([]);

/** The answers that a question offers, as `{label, value}`; values are texts. */
export function optionsOf(item) {
  const offered = member(item, "options", "choices");
  if (!Array.isArray(offered)) return [];
  return offered.map(option).filter(Boolean).slice(0, OPTIONS_MAX);
}

function option(one) {
  const value = textOf(one) ?? textOf(member(one, "value", "id", "label", "text", "title"));
  if (value === undefined || blank(value)) return undefined;
  return { label: textOf(member(one, "label", "text", "title")) ?? value, value };
}

/** The text of a string, number or boolean. */
function textOf(value) {
  if (typeof value === "string") return value;
  return typeof value === "boolean" || numberOf(value) !== undefined ? JSON.stringify(value) : undefined;
}

function blank(text) {
  return text.trim() === "";
}

/** How a question ended, by its entry: `{kind, answer, by}` with `kind` "answered", "skipped" or "expired"; undefined while it is open. */
export function endOf({ item, updated_by: by }) {
  if (item?.answer === undefined) return undefined;
  const kind = item.expired === true ? "expired" : item.skipped === true ? "skipped" : "answered";
  return { kind, answer: item.answer, by };
}

/** Answers a question (`{answer}` or `{skip: true}`) and remembers it as answered here. */
export async function answer(question, body) {
  const { session, seq } = question;
  await put(board(session, "questions", String(seq), "answer"), body);
  keepDraft(keyOf(question), "");
  const one = { ...question, answer: body.answer, skipped: body.skip === true, answeredAt: new Date().toISOString() };
  answeredHere.value = [one, ...answeredHere.peek()].slice(0, ANSWERED_MAX);
}

/** Reads how a question ended; "deleted" where it is not there any more. */
export async function readEnd({ session, seq }) {
  try {
    return endOf((await get(board(session, "questions", String(seq)))).body);
  } catch (error) {
    if (error.status === 404) return { kind: "deleted" };
    throw error;
  }
}

const defaults = new Map();

/** The answer that a question gets when it expires; undefined if it is not known. */
export function readDefault(question) {
  const key = keyOf(question);
  if (!defaults.has(key)) defaults.set(key, defaultOf(question).catch(() => undefined));
  return defaults.get(key);
}

/** A default is told only by the commit that asked. After a change of the entry that commit is not known here. */
async function defaultOf({ session, seq, revision, updated_at: changed }) {
  if (changed !== undefined) return undefined;
  const { body } = await get(board(session, "events"), { query: { after: revision - 1, on: "questions" } });
  const commit = body.events?.find((one) => one.revision === revision);
  return commit?.changes.find((change) => change.kind === "awaited" && change.first <= seq && seq <= change.last)?.default;
}
