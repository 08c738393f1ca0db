// The time as a signal that ticks while the page is visible.

import { signal } from "./dom.js";

/** The present time in milliseconds, at most a second old while the page is visible. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now();
}, 1000);
