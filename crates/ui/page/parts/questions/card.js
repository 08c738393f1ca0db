// One question with its answer field, options and countdown, in the inbox or where its entry stands; one line once others have answered it.

import { rights, writer } from "../../core/api.js";
import { href, place } from "../../core/address.js";
import { now } from "../../core/clock.js";
import { cx, html, useEffect, useRef, useState } from "../../core/dom.js";
import { draftOf, keepDraft } from "../../core/drafts.js";
import { brief, hue, short, span } from "../../core/format.js";
import { keyOf, look } from "../../core/inbox.js";
import { answer, optionsOf, readDefault, readEnd } from "../../core/questions/questions.js";
import { itemText } from "../../core/timeline.js";
import { Agent, Ago, Button, ButtonLink, Copy, Long, toast } from "../basics.js";
import { Compose } from "../compose.js";

/** The longest text that is shown at once. */
const TEXT_CHARS = 1200;

/** Nearer to its expiry than this, a countdown stands out. */
const SOON_MS = 60_000;

export function Question({ question, gone, mayWrite, onGone }) {
  const { session, agent } = question;
  // An answer that others gave first is known here before the inbox tells.
  const [lost, setLost] = useState();
  const end = gone ?? lost;
  if (end && end.kind !== "open") return html`<${Gone} question=${question} end=${end} onGone=${onGone} />`;
  return html`<article class=${cx("question card", agent && `hue-${hue(agent)}`)} aria-label=${short(itemText("questions", question.item), 120)}>
    <header>
      <${Agent} name=${agent} /><span class="muted">in</span><a class="truncate" href=${href("questions", undefined, { ...place.value.params, session })} title=${`Only questions of ${session}`}>${session}</a>
      <span class="muted small nowrap"><a href=${href("timeline", session, { around: question.revision })} title="In the timeline">#${question.seq}</a> · <${Ago} at=${question.at} /></span>
      <span class="grow"></span>
      ${question.expires_at && html`<${Countdown} question=${question} />`}
      <${ButtonLink} icon="timeline" kind="quiet wide-only" label="In the timeline" href=${href("timeline", session, { around: question.revision })} />
    </header>
    <div class="body stack">
      <div class="question-text" dir="auto"><${Long} text=${itemText("questions", question.item)} max=${TEXT_CHARS} /></div>
      ${mayWrite && html`<${Answer} question=${question} onLost=${setLost} />`}
    </div>
  </article>`;
}

function Countdown({ question }) {
  const [fallback, setFallback] = useState();
  useEffect(() => {
    let over = false;
    readDefault(question).then((value) => over || setFallback(value));
    return () => (over = true);
  }, [question.expires_at]);
  const left = new Date(question.expires_at) - now.value;
  const then = fallback === undefined ? "" : `, then “${brief(fallback, 40)}”`;
  return html`<span class=${cx("countdown small num", left < SOON_MS && "soon")} title=${fallback === undefined ? "Expires without a default answer, or with one that is not known here" : `The default answer: ${brief(fallback, 400)}`}>${left > 0 ? `${span(left)} left` : "expires now"}${then}</span>`;
}

/** A question where its entry stands: its answer field while it is open; a line if it ended before what is typed here was sent. */
export function AnswerHere({ question, end }) {
  const [lost, setLost] = useState();
  const ended = end ?? lost;
  if (ended && (lost || draftOf(keyOf(question)) !== "")) return html`<${Gone} question=${question} end=${ended} onGone=${() => setLost(undefined)} />`;
  return !ended && rights.value.mayWrite && html`<${Answer} question=${question} onLost=${setLost} />`;
}

function Answer({ question, onLost }) {
  const [busy, setBusy] = useState(false);
  const ref = useRef();
  const { session, seq, item } = question;
  const options = optionsOf(item);
  const send = async (body) => {
    setBusy(true);
    // In the inbox one goes on to the next question, elsewhere back to what one had open.
    const of = (place) => ref.current.closest(place);
    const next = of("li")?.nextElementSibling?.querySelector("textarea") ?? of("[data-group]")?.querySelector("a.title") ?? of(".drawer");
    try {
      await answer(question, body);
      toast(body.skip ? "Skipped" : `Answered${writer() && ` as ${writer()}`}`);
      next?.focus();
      look();
    } catch (error) {
      if (error.code !== "already-answered") toast(error.message, { bad: true });
      else onLost((await readEnd(question).catch(() => undefined)) ?? { kind: "answered" });
      setBusy(false);
    }
  };
  return html`<div class="answer" ref=${ref}>
    ${options.length > 0 && html`<div class="row wrap" role="group" aria-label="Answers offered">${options.map(({ label, value }) => html`<${Button} key=${value} class="option" disabled=${busy} onClick=${() => send({ answer: value })}>${short(label, 80)}<//>`)}</div>`}
    <${Compose} draft=${keyOf(question)} label=${`Answer to question ${seq} of ${session}`} placeholder=${options.length > 0 ? "Or an answer of your own" : "Answer"} action="Answer" busy=${busy} onSend=${(text) => send({ answer: text })}>
      <${Button} kind="quiet" label="End the question without an answer" disabled=${busy} onClick=${() => send({ skip: true })}>Skip<//>
    <//>
  </div>`;
}

const ENDS = {
  loading: "Not open any more",
  answered: "Answered elsewhere",
  skipped: "Skipped elsewhere",
  expired: "Expired",
  deleted: "Deleted",
};

/** The line of a question that ended elsewhere, with the answer that won and what was not sent here. */
function Gone({ question, end, onGone }) {
  const draft = draftOf(keyOf(question));
  const close = () => {
    keepDraft(keyOf(question), "");
    onGone();
  };
  return html`<div class="question-gone" role="status">
    <span class="badge">${ENDS[end.kind]}</span>
    <span class="grow">
      <span class="gone-text">${short(itemText("questions", question.item), 140)}</span>
      ${end.answer !== undefined && end.answer !== null && html` <strong>${brief(end.answer, 200)}</strong>`}
      ${end.by && html` <span class="small muted">by <${Agent} name=${end.by} /></span>`}
      ${draft !== "" && html`<span class="small gone-draft"><span class="muted">not sent: </span>${short(draft, 200)} <${Copy} text=${draft} label="Copy what was not sent" /></span>`}
    </span>
    <${Button} icon="close" kind="quiet" label="Close" onClick=${close} />
  </div>`;
}
