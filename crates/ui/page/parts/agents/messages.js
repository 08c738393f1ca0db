// The messages to an agent, the latest first: sent, answered and acknowledged.

import { logPath, post, put, rights, withQuery, writer } from "../../core/api.js";
import { cx, html, useEffect, useMemo, useRef, useState } from "../../core/dom.js";
import { draftOf, keepDraft } from "../../core/drafts.js";
import { brief, count, hue, plural } from "../../core/format.js";
import { numberOf } from "../../core/json.js";
import { useResource } from "../../core/resource.js";
import { Agent, Ago, attempt, Button, Long, ProblemNote, Skeleton } from "../basics.js";
import { Compose } from "../compose.js";
import { openHref } from "../entry.js";
import { remembers } from "./costs.js";

/** The messages that are shown until one asks for more. */
const PAGE = 20;

/** The longest text that is shown at once. */
const TEXT_CHARS = 1200;

export function Messages({ session, agent, feed }) {
  const [limit, setLimit] = useState(PAGE);
  const [unacked, setUnacked] = useState(false);
  const on = useMemo(() => remembers(agent, "messages"), [agent]);
  const path = logPath(session, `agents/${agent}/messages`);
  const { data, error, loading, refresh } = useResource(withQuery(path, { order: "desc", limit, unacked: unacked || undefined }), { feed, on });
  const { mayWrite, agent: bound } = rights.value;
  const isForeign = error?.status === 403;
  const entries = isForeign ? [] : data?.entries ?? [];
  return html`<section class="stack messages" aria-label="Messages">
    <header class="row wrap"><h3 class="grow">Messages to ${agent}</h3>
      ${!isForeign && html`<label class="check small"><input type="checkbox" checked=${unacked} onChange=${(event) => setUnacked(event.currentTarget.checked)} />Only those not acknowledged</label>`}</header>
    ${mayWrite && html`<${Write} session=${session} to=${agent} draft=${`${session}/${agent}`} onSent=${refresh} />`}
    ${isForeign && html`<p class="foreign">The messages to an agent are its own. Reading them here needs the right <code>memory:read</code>.</p>`}
    ${error && !isForeign && html`<${ProblemNote} error=${error} retry=${refresh} />`}
    ${loading && html`<${Skeleton} />`}
    ${data && !isForeign && entries.length === 0 && html`<p class="muted">${unacked ? "All are acknowledged." : "No messages."}</p>`}
    <ol class="steps">${entries.map((entry) => html`<${Message} key=${entry.seq} session=${session} agent=${agent} entry=${entry} mayAck=${mayWrite && (bound ?? agent) === agent} refresh=${refresh} />`)}</ol>
    ${data?.more && html`<div><${Button} onClick=${() => setLimit(limit + PAGE)}>Show more of ${plural(data.count, "message")}<//></div>`}
  </section>`;
}

function Message({ session, agent, entry, mayAck, refresh }) {
  const { seq, at, agent: sender, item, acked_at: acked } = entry;
  const [replies, setReplies] = useState(false);
  const me = writer();
  const what = `agents/${agent}/messages/${seq}`;
  const { text, thread, reply_to: replyTo } = item;
  // The message that it answers is one to its sender.
  const answered = sender && numberOf(replyTo);
  const ref = useRef();
  // What one used goes away; the focus stays at the message.
  const stay = () => ref.current.querySelector("a").focus();
  const ack = () => attempt(async () => {
    await put(`${logPath(session, `agents/${agent}/messages`)}/${seq}/ack`);
    stay();
    refresh();
  }, `Message ${count(seq)} is acknowledged`);
  const sent = () => {
    setReplies(false);
    stay();
  };
  useEffect(() => {
    if (replies) ref.current.querySelector("textarea").focus();
  }, [replies]);
  return html`<li ref=${ref} class=${cx("message card", sender && `hue-${hue(sender)}`)}>
    <div class="row wrap small">
      <${Agent} name=${sender} /><a href=${openHref(what)}>#${seq}</a>
      ${replyTo && html`<span class="muted">answers ${answered > 0 ? html`<a href=${openHref(`agents/${sender}/messages/${answered}`)}>#${answered} to ${sender}</a>` : brief(replyTo, 40)}</span>`}
      ${thread && html`<span class="badge">thread ${brief(thread, 40)}</span>`}
      <span class="grow muted"><${Ago} at=${at} /></span>
      ${acked ? html`<span class="muted">acknowledged <${Ago} at=${acked} /></span>` : html`<span class="badge warn">not acknowledged</span>`}
    </div>
    <div class="question-text" dir="auto"><${Long} text=${typeof text === "string" ? text : JSON.stringify(item)} max=${TEXT_CHARS} /></div>
    <div class="row wrap">
      ${rights.value.mayWrite && sender && sender !== me && html`<${Button} aria-expanded=${String(replies)} onClick=${() => setReplies(!replies)}>${me === agent ? "Reply" : `Write to ${sender}`}<//>`}
      ${mayAck && !acked && html`<${Button} icon="check" label=${me === agent ? undefined : `Acknowledges it for ${agent}, which is not woken by it any more`} onClick=${ack}>Acknowledge<//>`}
    </div>
    ${replies && html`<${Write} session=${session} to=${sender} draft=${`${session}/${what}`} item=${{ thread, reply_to: me === agent ? seq : undefined }} onSent=${sent} />`}
  </li>`;
}

/** The field of a message `to` an agent. `item` has the members of one that answers another; else a thread can be named. */
function Write({ session, to, draft, item, onSent }) {
  const [busy, setBusy] = useState(false);
  const [text, thread] = [`text ${draft}`, `thread ${draft}`];
  const send = async (said) => {
    setBusy(true);
    const isSent = await attempt(() => post(logPath(session, `agents/${to}/messages`), { text: said, ...(item ?? { thread: draftOf(thread).trim() || undefined }) }), `Sent to ${to}${writer() && ` as ${writer()}`}`);
    setBusy(false);
    if (!isSent) return;
    keepDraft(text, "");
    onSent();
  };
  const fields = !item && html`<input class="field thread" aria-label="Thread (optional)" placeholder="Thread" value=${draftOf(thread)} onInput=${(event) => keepDraft(thread, event.currentTarget.value)} />`;
  return html`<${Compose} draft=${text} label=${`Message to ${to}`} action="Send" busy=${busy} fields=${fields} onSend=${send} />`;
}
