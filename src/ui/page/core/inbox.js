// The number of open questions over all sessions, for the navigation and the window's title.

import { get, needsLogin, rights } from "./api.js";
import { signal, useEffect } from "./dom.js";

/** The time between two looks. An unchanged inbox is answered 304 by its tag. */
const LOOK_MS = 5000;

/** The most questions that are counted. */
export const COUNTED_MAX = 1000;

/** The open questions as last seen, oldest first. */
export const questions = signal([]);
const open = signal(0);
let users = 0;
let timer;

export async function look() {
  if (!rights.peek().known || needsLogin.peek()) return;
  try {
    const { body } = await get("/v1/questions", { query: { limit: COUNTED_MAX } });
    questions.value = body.questions;
    open.value = body.questions.length;
  } catch {
    // The view shows problems; the number stays as it was.
  }
}

/** The number of open questions as a signal, kept up to date while it is used. */
export function useInbox() {
  useEffect(() => {
    users += 1;
    if (users === 1) {
      look();
      timer = setInterval(look, LOOK_MS);
    }
    return () => {
      users -= 1;
      if (users === 0) clearInterval(timer);
    };
  }, []);
  return open;
}

rights.subscribe(({ known }) => {
  if (known && users > 0) look();
});
