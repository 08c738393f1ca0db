// The changes between two revisions: added, changed and removed places with what they were and are.

import { board, get } from "../../core/api.js";
import { cx, html } from "../../core/dom.js";
import { count, plural, short } from "../../core/format.js";
import { differences } from "../../core/past.js";
import { usePages } from "../../core/resource.js";
import { itemText } from "../../core/timeline.js";
import { Button, Empty, Skeleton } from "../basics.js";
import { openHref } from "../entry.js";
import { title } from "../group.js";
import { RequestState } from "../tasks/state.js";
import { PastProblem } from "./problem.js";
import { ValueDiff } from "./values.js";

/** The differences of one page. */
const PAGE = 50;

export function Changes({ session, from, to, oldest }) {
  const page = async (after, signal) => {
    const { body } = await get(board(session, "diff"), { query: { from, to, limit: PAGE, after }, signal });
    return { ...body, items: differences(body) };
  };
  const { items: rows, loading, error, read, ...last } = usePages(page, [session, from, to]);
  return html`<section class="past-changes" aria-label="Changes">
    <${PastProblem} error=${error} oldest=${oldest} param="from" />
    ${!loading && !error && rows.length === 0 && html`<${Empty} title="Nothing differs"><p>The board is the same at both revisions.</p><//>`}
    ${rows.length > 0 && html`<p class="muted small" role="status">${last.more ? `The first ${plural(rows.length, "difference")}` : plural(rows.length, "difference")} from revision ${count(last.from)} to ${count(last.to)}</p>`}
    ${rows.map((row) => html`<${Difference} key=${`${row.kind} ${row.path}`} row=${row} />`)}
    ${loading && html`<${Skeleton} />`}
    ${last.more && !loading && html`<div><${Button} onClick=${read}>More differences<//></div>`}
  </section>`;
}

function Difference({ row }) {
  const { path, kind, before, after, image, entry } = row;
  const isEntry = /^(questions|requests|trajectories|screenshots|agents|state)(\/|$)/.test(path);
  return html`<article class="card difference">
    <header><span class=${cx("badge", `diff-${kind}`)}>${kind}</span>
      ${isEntry && kind !== "removed" ? html`<a class="grow mono truncate" href=${openHref(path)}><bdi>${short(path, 300)}</bdi></a>` : html`<span class="grow mono truncate"><bdi>${short(path, 300)}</bdi></span>`}
      ${entry && html`<${RequestState} entry=${entry} />`}
    </header>
    <div class="body row difference-body">
      ${image && kind !== "removed" && html`<img loading="lazy" decoding="async" width="128" height="80" src="${image.url}?max_px=240" alt="" />`}
      <div class="grow">${kind === "changed" && JSON.stringify(before) === JSON.stringify(after) ? html`<${Same} row=${row} />` : html`<${ValueDiff} before=${before} after=${after} />`}</div>
    </div>
  </article>`;
}

/** An entry whose item stayed: what else of it changed. */
function Same({ row: { path, after, entry } }) {
  const type = ["done", "failed", "cancelled"].find((one) => entry?.[one]);
  const end = type && title({ type, change: entry[type] });
  return html`<p>${short(itemText(path.split("/")[0], after), 400)}</p>
    <p class="muted small">${end ?? "The item stayed the same."}</p>`;
}
