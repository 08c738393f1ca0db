// The past of a session: any revision's board, changes, comparisons, the history of a path; fork and restore.

import { board } from "../core/api.js";
import { place, setParams } from "../core/address.js";
import { html, useEffect, useState } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { pointOf } from "../core/past.js";
import { touches, useResource } from "../core/resource.js";
import { ProblemNote, Skeleton, Tabs } from "../parts/basics.js";
import { PastBoard } from "../parts/past/board.js";
import { Changes } from "../parts/past/changes.js";
import { Compare } from "../parts/past/compare.js";
import { Actions } from "../parts/past/dialogs.js";
import { useMarks } from "../parts/past/marks.js";
import { PastProblem } from "../parts/past/problem.js";
import { PathHistory } from "../parts/past/path.js";
import { Slider } from "../parts/past/slider.js";

const TABS = [["board", "Board"], ["changes", "Changes"], ["compare", "Compare"], ["path", "Path"]];

/** The revisions that "Changes" covers at first. */
const RANGE = 50;

export function Past({ session }) {
  const feed = useFeed(session);
  const marks = useMarks(session, feed);
  const about = useResource(board(session), { feed, on: touches({ kinds: ["configured"] }) });
  const named = useResource(`${board(session, "checkpoints")}?limit=1000`, { feed, on: touches({ kinds: ["checkpoint_put", "checkpoint_removed"] }) });
  const { params } = place.value;
  const checkpoints = named.data?.checkpoints ?? [];
  if (about.error && !about.data) return html`<div class="view padded past"><${ProblemNote} error=${about.error} retry=${about.refresh} /></div>`;
  if (!about.data || named.loading) return html`<div class="view padded past"><${Skeleton} lines=${8} /></div>`;
  const oldest = about.data.oldest_revision;
  const head = Math.max(feed.head.value, about.data.revision);
  const mode = params.path !== undefined ? "path" : params.with !== undefined ? "compare" : params.from !== undefined ? "changes" : "board";
  const wanted = mode === "changes" ? params.to : params.at;
  const at = Math.min(head, Math.max(oldest, revisionOf(wanted, checkpoints) ?? head));
  const asked = mode === "changes" ? params.from : params.at;
  const gone = mode !== "path" && /^\d+$/.test(asked ?? "") && Number(asked) < oldest;
  const choose = (to) => setParams(tab(to, { at, head, oldest, asked: wanted }), { replace: false });
  const slide = (revision) => setParams({ [mode === "changes" ? "to" : "at"]: revision >= head ? null : revision });
  return html`<div class="view padded past">
    <div class="row wrap past-head"><${Tabs} label="The past as" tabs=${TABS} value=${mode} onChange=${choose} /><span class="grow"></span><${Actions} session=${session} at=${at} head=${head} checkpoints=${checkpoints} /></div>
    <${Slider} session=${session} feed=${feed} oldest=${oldest} head=${head} at=${at} from=${mode === "changes" ? revisionOf(params.from, checkpoints) : undefined} marks=${marks} checkpoints=${checkpoints} onChange=${slide} label=${mode === "changes" ? "End of the range" : "Revision"} />
    ${gone && html`<${PastProblem} error=${{ code: "history-compacted" }} oldest=${oldest} param=${mode === "changes" ? "from" : "at"} />`}
    ${mode === "board" && !gone && html`<${PastBoard} session=${session} at=${params.at} feed=${feed} oldest=${oldest} />`}
    ${mode === "changes" && html`<${Point} label="From revision or checkpoint" value=${params.from} name="from" checkpoints=${checkpoints} />${!gone && html`<${Changes} session=${session} from=${params.from} to=${params.to ?? head} oldest=${oldest} />`}`}
    ${mode === "compare" && html`<${Point} label="Compare with" hint="revision, checkpoint, session@ or session@revision" value=${params.with} name="with" checkpoints=${checkpoints} />${!gone && html`<${Compare} left=${{ session, at: params.at }} right=${pointOf(params.with, session)} head=${head} oldest=${oldest} />`}`}
    ${mode === "path" && html`<${PathHistory} session=${session} path=${params.path} oldest=${oldest} head=${head} suggestions=${["state", "requests/1", "questions/1"]} />`}
  </div>`;
}

/** The revision that a number or a checkpoint's name stands for, or undefined. */
function revisionOf(text, checkpoints) {
  if (text === undefined) return undefined;
  return /^\d+$/.test(text) ? Number(text) : checkpoints.find((one) => one.name === text)?.revision;
}

/** The parameters of a tab; the revision that is looked at stays. */
function tab(to, { at, head, oldest, asked }) {
  const none = { at: null, from: null, to: null, with: null, path: null };
  const present = at >= head ? null : asked;
  if (to === "changes") return { ...none, from: Math.max(oldest, at - RANGE), to: present };
  if (to === "compare") return { ...none, at: at >= head ? Math.max(oldest, head - RANGE) : asked, with: head };
  if (to === "path") return { ...none, at: present, path: "state" };
  return { ...none, at: present };
}

/** A field for a revision, a checkpoint or a session's revision, kept in the address. */
function Point({ label, hint, value, name, checkpoints }) {
  const [text, setText] = useState(value);
  useEffect(() => setText(value), [value]);
  const submit = (event) => {
    event.preventDefault();
    if (text.trim() !== "") setParams({ [name]: text.trim() });
  };
  return html`<form class="row wrap past-point" onSubmit=${submit}>
    <label class="row">${label} <input class="field" list="past-points" value=${text} onInput=${(event) => setText(event.currentTarget.value)} onChange=${submit} /></label>
    ${hint && html`<span class="muted small">${hint}</span>`}
    <datalist id="past-points">${checkpoints.map((one) => html`<option value=${one.name}>revision ${one.revision}</option>`)}</datalist>
  </form>`;
}
