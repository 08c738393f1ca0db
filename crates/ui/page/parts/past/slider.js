// The slider over a session's revisions: film, marks, the revision's author and time.

import { board, get } from "../../core/api.js";
import { cx, html, useEffect, useRef, useState } from "../../core/dom.js";
import { count, fullTime, plural } from "../../core/format.js";
import { clustered, placeOf } from "../../core/past.js";
import { useRead } from "../../core/resource.js";
import { Agent, Ago, Button } from "../basics.js";
import { Icon } from "../icon.js";
import { Film } from "./film.js";

/** The address follows the slider after so long, so that a drag does not read a board at each pixel. */
const SETTLE_MS = 140;

/** The places for marks. */
const BUCKETS = 160;

/** The most marks that a title names. */
const NAMED_MAX = 6;

export function Slider({ session, feed, oldest, head, at, from, marks, checkpoints, onChange, label = "Revision" }) {
  const [moved, setMoved] = useState();
  const timer = useRef();
  const value = moved ?? at;
  useEffect(() => setMoved(undefined), [at]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const move = (to) => {
    const revision = Math.min(head, Math.max(oldest, to));
    setMoved(revision);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(revision), SETTLE_MS);
  };
  const commit = useCommit(session, value, oldest);
  const named = checkpoints.map((one) => ({ revision: one.revision, kind: "checkpoint", text: `checkpoint ${one.name}` }));
  const events = marks.list.value.filter((mark) => mark.revision >= oldest && mark.revision <= head);
  const all = [...named, ...events].sort((a, b) => a.revision - b.revision);
  const before = all.findLast((mark) => mark.revision < value);
  const after = all.find((mark) => mark.revision > value);
  const who = commit ? `, ${fullTime(commit.at)}${commit.agent ? `, by ${commit.agent}` : ""}` : "";
  const key = (event) => {
    const to = { "[": before, "]": after }[event.key];
    if (!to) return;
    event.preventDefault();
    move(to.revision);
  };
  return html`<section class="past-slider" aria-label="History" onKeyDown=${key}>
    <${Film} session=${session} feed=${feed} oldest=${oldest} head=${head} at=${value} onJump=${move} />
    <div class="track">
      ${from !== undefined && html`<span class="track-range" style=${rangeOf(from, value, oldest, head)}></span>`}
      <div class="track-marks" aria-hidden="true">${clustered(all, oldest, head, BUCKETS).map((cluster) => html`<span key=${`${cluster.kind} ${cluster.place}`} class=${cx("mark", `mark-${cluster.kind}`)} style=${{ left: `${cluster.place * 100}%` }} title=${titleOf(cluster)} onClick=${() => move(cluster.marks[0].revision)}></span>`)}</div>
      <input type="range" min=${oldest} max=${head} step="1" value=${value} disabled=${head <= oldest} aria-label=${label} aria-valuetext=${`revision ${value}${who}`} onInput=${(event) => move(Number(event.currentTarget.value))} />
    </div>
    <div class="row wrap past-where">
      <${Button} icon="left" label="One revision earlier" disabled=${value <= oldest} onClick=${() => move(value - 1)} />
      <input class="field num revision" type="number" aria-label=${`${label} number`} min=${oldest} max=${head} value=${value} onChange=${(event) => event.currentTarget.value !== "" && move(Number(event.currentTarget.value))} />
      <${Button} icon="right" label="One revision later" disabled=${value >= head} onClick=${() => move(value + 1)} />
      <span class="muted num nowrap">of ${count(head)}</span>
      <span class="grow past-commit">${commit ? html`<${Agent} name=${commit.agent} /><span class="nowrap">${fullTime(commit.at)}</span><span class="muted nowrap"><${Ago} at=${commit.at} /></span>` : value <= oldest && html`<span class="muted">${oldest > 0 ? "the oldest board that is kept" : "before the first commit"}</span>`}</span>
      <span class="row">
        <${Button} disabled=${!before} label=${before ? `Back to ${before.text} ( [ )` : "No mark before"} icon="left" onClick=${() => move(before.revision)}>Mark<//>
        <${Button} disabled=${!after} label=${after ? `On to ${after.text} ( ] )` : "No mark after"} onClick=${() => move(after.revision)}>Mark<${Icon} name="right" /><//>
        <${Button} disabled=${value >= head} label="The present board" onClick=${() => move(head)}>Now<//>
      </span>
    </div>
    <${Legend} marks=${marks} events=${events} named=${named} />
  </section>`;
}

function Legend({ marks, events, named }) {
  const failures = events.filter((mark) => mark.kind === "failure").length;
  const restores = events.length - failures;
  return html`<p class="row wrap muted small legend" role="status">
    <span><span class="swatch mark-checkpoint"></span>${plural(named.length, "checkpoint")}</span>
    <span><span class="swatch mark-failure"></span>${plural(failures, "failure")}</span>
    ${restores > 0 && html`<span><span class="swatch mark-restore"></span>${plural(restores, "restore")}</span>`}
    ${marks.loading.value && html`<span>Looking for more…</span>`}
    ${marks.cut.value && html`<span>Not all of the history was searched for marks.</span>`}
  </p>`;
}

function titleOf({ marks }) {
  const names = marks.slice(0, NAMED_MAX).map((mark) => `${mark.revision}: ${mark.text}`);
  if (marks.length > NAMED_MAX) names.push(`and ${marks.length - NAMED_MAX} more`);
  return names.join("\n");
}

function rangeOf(a, b, oldest, head) {
  const [left, right] = [placeOf(Math.min(a, b), oldest, head), placeOf(Math.max(a, b), oldest, head)];
  return { left: `calc(8px + (100% - 16px) * ${left})`, width: `calc((100% - 16px) * ${right - left})` };
}

/** The commit of a revision, from the audit, or undefined. */
function useCommit(session, revision, oldest) {
  const { value } = useRead(async (signal) => {
    await new Promise((done) => setTimeout(done, SETTLE_MS / 2));
    return (await get(board(session, "audit"), { query: { after: revision - 1, before: revision + 1 }, signal })).body.commits[0];
  }, [session, revision], true);
  return value?.revision === revision && revision > oldest ? value : undefined;
}
