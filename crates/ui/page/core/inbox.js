// The open questions of all sessions: their number for the navigation and the window's title, and what is new.

import { get, needsLogin, rights } from "./api.js";
import { batch, signal, useEffect } from "./dom.js";

/** The time between two looks; shorter while the questions' view is open. An unchanged inbox is answered 304 by its tag. */
const LOOK_MS = 5000;
const LOOK_CLOSELY_MS = 1500;

/** The most questions that are counted. */
export const COUNTED_MAX = 1000;

/** The open questions as last seen, oldest first. */
export const questions = signal([]);

/** True if more questions are open than are counted. */
export const hasMore = signal(false);

/** True once the inbox was read. */
export const looked = signal(false);

/** The problem of the last look. */
export const problem = signal(undefined);

const open = signal(0);
const listeners = new Set();
let users = 0;
let closely = 0;
let timer;
let looking;
let lookedAt = 0;
let etag;

/** Reads the inbox now. Looks under way are shared. */
export function look() {
  lookedAt = Date.now();
  looking ??= read().finally(() => (looking = undefined));
  return looking;
}

async function read() {
  if (!rights.peek().known || needsLogin.peek()) return;
  try {
    const answer = await get("/v1/questions", { query: { limit: COUNTED_MAX } });
    if (looked.peek() && etag !== null && answer.etag === etag && !problem.peek()) return;
    etag = answer.etag;
    const found = answer.body.questions.sort(older);
    const known = new Set(questions.peek().map(keyOf));
    const fresh = looked.peek() ? found.filter((one) => !known.has(keyOf(one))) : [];
    batch(() => {
      questions.value = found;
      hasMore.value = answer.body.more === true;
      open.value = found.length;
      looked.value = true;
      problem.value = undefined;
    });
    if (fresh.length > 0) for (const fn of listeners) fn(fresh);
  } catch (error) {
    // The number stays as it was; the view shows the problem.
    problem.value = error;
  }
}

/** The name of a question over all sessions. A session made again under its name has other questions. */
export function keyOf({ session, seq, at }) {
  return `${session}/${seq}/${at}`;
}

/** The order of questions: the oldest first. */
export function older(a, b) {
  return a.at < b.at ? -1 : a.at > b.at ? 1 : a.session < b.session ? -1 : a.session > b.session ? 1 : a.seq - b.seq;
}

/** Calls `fn(questions)` for questions that are new since the last look. Returns the function that ends it. */
export function onNew(fn) {
  listeners.add(fn);
  return () => listeners.delete(fn);
}

/** The number of open questions as a signal, kept up to date while it is used. */
export function useInbox() {
  useEffect(() => {
    users += 1;
    if (users === 1) {
      look();
      schedule();
    }
    return () => {
      users -= 1;
      if (users === 0) clearInterval(timer);
    };
  }, []);
  return open;
}

/** Looks more often while the caller is shown. */
export function useCloseLook() {
  useEffect(() => {
    closely += 1;
    look();
    schedule();
    return () => {
      closely -= 1;
      schedule();
    };
  }, []);
}

/** A hidden page looks for its notifications and its title only. */
function lookIfDue() {
  if (!document.hidden || Date.now() - lookedAt >= LOOK_MS) look();
}

function schedule() {
  clearInterval(timer);
  if (users > 0 || closely > 0) timer = setInterval(lookIfDue, closely > 0 ? LOOK_CLOSELY_MS : LOOK_MS);
}

rights.subscribe(({ known }) => {
  if (known && users > 0) look();
});
