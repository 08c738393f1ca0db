// One entry, state path, agent or commit as a drawer: its whole JSON, its addresses, and how to get it by curl.

import { board, curl, logPath, statePath, withQuery } from "../core/api.js";
import { absolute, href, place, setParams } from "../core/address.js";
import { html } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { fullTime } from "../core/format.js";
import { entryAt, historyOf } from "../core/past.js";
import { endOf } from "../core/questions/questions.js";
import { useResource } from "../core/resource.js";
import { imageSource } from "../core/shots.js";
import { itemText } from "../core/timeline.js";
import { Agent, Ago, ButtonLink, Command, Copy, ProblemNote, Skeleton } from "./basics.js";
import { Drawer } from "./dialog.js";
import { Json } from "./json.js";
import { Picture } from "./picture.js";
import { AnswerHere } from "./questions/card.js";
import { RequestState } from "./tasks/state.js";

/** The address of this view with something opened: `requests/3`, `state/plan/x`, `agents/NAME`, `revision/17`. */
export function openHref(what) {
  const { view, session, params } = place.peek();
  return href(view, session, { ...params, open: what });
}

/** Opens something in the drawer. */
export function open(what) {
  setParams({ open: what }, { replace: false });
}

/** The drawer of the address's parameter `open`, or nothing. */
export function OpenEntry({ session }) {
  const { open: what, at } = place.value.params;
  if (!what) return null;
  return html`<${EntryDrawer} key=${what} session=${session} what=${what} at=${at} />`;
}

/** The API's path of something that can be opened. */
export function pathOf(session, what) {
  if (what === "state") return board(session, "state");
  if (what.startsWith("state/")) return statePath(session, what.slice("state/".length));
  const revision = /^revision\/(\d+)$/.exec(what);
  if (revision) return `${board(session, "audit")}?after=${Number(revision[1]) - 1}&before=${Number(revision[1]) + 1}`;
  const entry = entryAt(what);
  if (entry) return `${logPath(session, entry.log)}/${entry.seq}`;
  return board(session, ...what.split("/"));
}

function EntryDrawer({ session, what, at }) {
  const path = pathOf(session, what);
  const feed = useFeed(session);
  const { matches } = historyOf(what) ?? {};
  const on = matches && !at ? (commit) => commit.changes.some(matches) : undefined;
  const { data: body, text, error } = useResource(withQuery(path, what.startsWith("revision/") ? {} : { at }), { feed, on });
  const close = () => setParams({ open: null });
  const link = () => absolute(openHref(what));
  return html`<${Drawer}
    title=${what}
    onClose=${close}
    actions=${html`<${Copy} icon="link" label="Copy link" text=${link} /><${Copy} icon="terminal" label="Copy as curl" text=${() => curl(path)} />`}
  >
    <${ProblemNote} error=${error} />
    ${!body && !error && html`<${Skeleton} />`}
    ${body && html`<${Facts} session=${session} what=${what} body=${body} />`}
    ${body && !at && what.startsWith("questions/") && html`<${AnswerHere} question=${{ ...body, session }} end=${error?.status === 404 ? { kind: "deleted" } : endOf(body)} />`}
    ${text && html`<section class="stack"><div class="row"><h3 class="grow">JSON</h3><${Copy} label="Copy JSON" text=${text}>Copy JSON<//></div><${Json} text=${text.trimEnd()} /></section>`}
    <section class="stack"><h3>curl</h3><${Command} text=${curl(path)} /></section>
  <//>`;
}

function Facts({ session, what, body }) {
  const { log } = entryAt(what) ?? {};
  return html`<section class="stack">
    ${log && body.item && html`<p>${itemText(log, body.item)}</p>`}
    ${imageSource(body) && html`<a href=${href("screenshots", session, { shot: body.seq })}><${Picture} entry=${body} px=${900} class="entry-image" alt=${itemText("screenshots", body.item) || `screenshot ${body.seq}`} /></a>`}
    <dl class="facts">
      ${body.agent && html`<dt>Agent</dt><dd><${Agent} name=${body.agent} /></dd>`}
      ${log === "requests" && html`<dt>State</dt><dd class="row wrap"><${RequestState} entry=${body} /></dd>`}
      ${body.at && html`<dt>At</dt><dd title=${fullTime(body.at)}>${fullTime(body.at)} (<${Ago} at=${body.at} />)</dd>`}
      ${body.updated_at && html`<dt>Changed</dt><dd>${fullTime(body.updated_at)}${body.updated_by && html` by <${Agent} name=${body.updated_by} />`}</dd>`}
      ${body.acked_at && html`<dt>Acknowledged</dt><dd>${fullTime(body.acked_at)}</dd>`}
      ${body.revision !== undefined && html`<dt>Revision</dt><dd><a href=${href("past", session, { at: body.revision })}>${body.revision}</a></dd>`}
    </dl>
    ${body.revision !== undefined && log && html`<div class="row wrap">
      <${ButtonLink} icon="timeline" href=${href("timeline", session, { around: body.revision })}>Around it<//>
    </div>`}
  </section>`;
}
