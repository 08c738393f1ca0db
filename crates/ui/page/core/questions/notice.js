// Browser notifications of new questions, if the person switched them on and the browser permits them.

import { go, href, place } from "../address.js";
import { onNew } from "../inbox.js";
import { notify } from "../settings.js";
import { itemText } from "../timeline.js";
import { short } from "../format.js";

/** The most notifications of one look; more are told as one. */
const SINGLE_MAX = 3;

/** True if the browser has notifications. */
export const isPossible = typeof Notification !== "undefined";

/** Switches notifications on or off. Returns false if the browser refuses them. Only for a click. */
export async function switchNotify(on) {
  if (on && (!isPossible || (await Notification.requestPermission()) !== "granted")) {
    notify.value = false;
    return false;
  }
  notify.value = on;
  return true;
}

onNew((fresh) => {
  if (!notify.peek() || !isPossible || Notification.permission !== "granted") return;
  if (!document.hidden && place.peek().view === "questions") return;
  if (fresh.length > SINGLE_MAX) return tell(`${fresh.length} new questions`, "", "questions", {});
  for (const { session, seq, agent, item } of fresh) {
    tell(`${agent ?? "A question"} in ${session}`, short(itemText("questions", item), 200), `${session}/${seq}`, { session });
  }
});

function tell(title, body, tag, params) {
  let shown;
  try {
    shown = new Notification(title, { body, tag });
  } catch {
    // Some browsers allow notifications to service workers only.
    return;
  }
  shown.onclick = () => {
    window.focus();
    go(href("questions", undefined, params));
    shown.close();
  };
}
