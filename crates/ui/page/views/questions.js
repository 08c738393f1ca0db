// The inbox: the open questions of all sessions, oldest first, to be answered in place.

import { board, curl, rights, withQuery } from "../core/api.js";
import { href, place } from "../core/address.js";
import { html, useEffect, useMemo, useRef, useState } from "../core/dom.js";
import { draftOf } from "../core/drafts.js";
import { brief, count, hasWords, plural, short } from "../core/format.js";
import { COUNTED_MAX, hasMore, keyOf, look, looked, older, problem, questions, useCloseLook } from "../core/inbox.js";
import { isPossible, switchNotify } from "../core/questions/notice.js";
import { answeredHere, optionsOf, readEnd } from "../core/questions/questions.js";
import { useResource } from "../core/resource.js";
import { notify } from "../core/settings.js";
import { itemText } from "../core/timeline.js";
import { Agent, Ago, Button, Command, Empty, Find, NameFilter, ProblemNote, Skeleton, toast } from "../parts/basics.js";
import { Question } from "../parts/questions/card.js";

/** Questions that are shown until one asks for more. */
const PAGE = 50;

/** How long a question that others answered stays as one line. */
const GONE_MS = 20_000;

/** The time between two looks at one session's questions, where the inbox has more than the page counts. */
const SESSION_LOOK_MS = 2000;

export function Questions() {
  useCloseLook();
  const { session = "", agent = "", text = "" } = place.value.params;
  const [limit, setLimit] = useState(PAGE);
  const open = useOpen(session);
  const cards = useCards(open.list, session);
  const found = useMemo(() => cards.filter((card) => matches(card.question, { session, agent, text })), [cards, session, agent, text]);
  const shown = found.slice(0, limit);
  const n = found.filter((card) => !card.gone).length;
  const isFiltered = session !== "" || agent !== "" || text !== "";
  return html`<div class="view questions">
    <div class="bar">
      <${Find} label="Find a question" />
      <${NameFilter} label="Session" all="All sessions" names=${cards.map(({ question }) => question.session)} name="session" value=${session} />
      <${NameFilter} label="Agent" all="All agents" names=${cards.map(({ question }) => question.agent).filter(Boolean)} name="agent" value=${agent} />
      <${Notify} />
    </div>
    <div class="questions-body">
      <${ProblemNote} error=${open.error} retry=${look} />
      ${!open.looked && !open.error && html`<${Skeleton} lines=${8} />`}
      ${n > 0 && html`<p class="muted small" role="status">${plural(n, "open question")}, oldest first${hasMore.value && session === "" ? `. The first ${count(COUNTED_MAX)} by session are listed; choose a session for its own` : ""}</p>`}
      <ul class="question-list">${shown.map((card) => html`<li key=${card.key}><${Question} question=${card.question} gone=${card.gone} mayWrite=${rights.value.mayWrite} onGone=${card.drop} /></li>`)}</ul>
      ${found.length > shown.length && html`<div><${Button} onClick=${() => setLimit(limit + PAGE)}>Show more of ${count(found.length)}<//></div>`}
      ${open.looked && found.length === 0 && (isFiltered ? html`<${Empty} title="No open question matches"><a href=${href("questions")}>Show all open questions</a><//>` : html`<${None} />`)}
      <${Answered} list=${answeredHere.value.filter((one) => session === "" || one.session === session)} />
    </div>
  </div>`;
}

/** The open questions: those of the inbox, or of one session where the inbox is cut. */
function useOpen(session) {
  const isCut = hasMore.value && session !== "";
  const own = useResource(isCut ? withQuery("/v1/questions", { prefix: session, limit: COUNTED_MAX }) : undefined, { every: isCut ? SESSION_LOOK_MS : undefined });
  const list = useMemo(() => (own.data ? own.data.questions.filter((one) => one.session === session).sort(older) : undefined), [own.data, session]);
  return isCut ? { list: list ?? [], looked: list !== undefined, error: own.error } : { list: questions.value, looked: looked.value, error: problem.value };
}

/**
 * The cards in their order: open questions, and for a while in their places those that others answered. A card with an
 * unsent answer stays until one closes it.
 */
function useCards(open, session) {
  const [, again] = useState(0);
  const held = useRef({ session, cards: new Map() });
  if (held.current.session !== session) held.current = { session, cards: new Map() };
  const { cards } = held.current;
  const redraw = () => again((n) => n + 1);
  const drop = (key) => {
    cards.delete(key);
    redraw();
  };
  const here = new Map(answeredHere.value.map((one) => [keyOf(one), one.revision]));
  // One that was answered here is open until the inbox is read again, or once more if its answer was taken away.
  const present = new Map(open.map((question) => [keyOf(question), question]).filter(([key, { revision }]) => !(here.get(key) >= revision)));
  for (const key of here.keys()) if (!present.has(key)) cards.delete(key);
  for (const [key, question] of present) {
    const card = cards.get(key);
    cards.set(key, { key, question: card ? { ...card.question, ...question } : question, drop: card?.drop ?? (() => drop(key)) });
  }
  const vanished = [...cards.values()].filter((card) => !present.has(card.key) && !card.gone);
  useEffect(() => {
    for (const card of vanished) leave(card);
  });
  const leave = (card) => {
    if (cards.get(card.key)?.gone) return;
    cards.set(card.key, { ...card, gone: { kind: "loading" } });
    readEnd(card.question).then((end) => {
      if (held.current.cards !== cards || !cards.has(card.key)) return;
      cards.set(card.key, { ...card, gone: end ?? { kind: "open" } });
      redraw();
    }, () => drop(card.key));
    setTimeout(() => draftOf(card.key) === "" && drop(card.key), GONE_MS);
  };
  return [...cards.values()].sort((a, b) => older(a.question, b.question));
}

function matches(question, { session, agent, text }) {
  if (session !== "" && question.session !== session) return false;
  if (agent !== "" && question.agent !== agent) return false;
  return hasWords(`${question.session} ${question.agent ?? ""} ${itemText("questions", question.item)}`, text);
}

function Notify() {
  if (!isPossible) return null;
  const change = async () => {
    if (!(await switchNotify(!notify.peek()))) toast("The browser does not permit notifications from this page.", { bad: true });
  };
  const isOn = notify.value && Notification.permission === "granted";
  return html`<${Button} icon="bell" aria-pressed=${String(isOn)} label="A browser notification for each new question" onClick=${change}>Notify<//>`;
}

function None() {
  return html`<${Empty} title="No open questions">
    <p>Questions that agents ask in any session appear here.</p>
    <${Command} text=${curl(board("demo", "questions"), { method: "POST", body: { question: "May I go on?", options: ["Yes", "No"] } })} />
  <//>`;
}

/** What was answered on this page, the last first. */
function Answered({ list }) {
  if (list.length === 0) return null;
  return html`<section class="answered" aria-label="Answered here">
    <h2>Answered here</h2>
    <ul>${list.map((one) => html`<li key=${keyOf(one)}>
      <div class="row small muted"><${Agent} name=${one.agent} /><span>in</span><a class="truncate" href=${href("timeline", one.session, { around: one.revision })}>${one.session} #${one.seq}</a><span class="grow"></span><${Ago} at=${one.answeredAt} /></div>
      <div>${short(itemText("questions", one.item), 200)}</div>
      <div>${one.skipped ? html`<span class="muted">Skipped</span>` : html`<strong>${said(one)}</strong>`}</div>
    </li>`)}</ul>
  </section>`;
}

/** The answer as it was offered, or as it was written. */
function said({ item, answer }) {
  return brief(optionsOf(item).find(({ value }) => value === answer)?.label ?? answer, 300);
}
