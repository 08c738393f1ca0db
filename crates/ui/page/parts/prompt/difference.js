// The difference of a prompt between two revisions, by lines of its texts.

import { board, get, withQuery } from "../../core/api.js";
import { setParams } from "../../core/address.js";
import { cx, html, useEffect, useMemo, useState } from "../../core/dom.js";
import { count } from "../../core/format.js";
import { lineDiff } from "../../core/lines.js";
import { imageLine, partsOf, viewQuery } from "../../core/prompt/parts.js";
import { Button, Empty, ProblemNote, Skeleton } from "../basics.js";
import { indent } from "../json.js";

/** The lines that are shown until one asks for more. */
const LINES_SHOWN = 2000;

/** Texts beyond this are compared as they are, not indented. */
const INDENTED_CHARS_MAX = 6_000_000;

export function Difference({ session, params, parts, revision }) {
  const [before, setBefore] = useState();
  const path = withQuery(board(session, "prompt"), viewQuery(params, { at: params.from }));
  useEffect(() => {
    const aborter = new AbortController();
    setBefore(undefined);
    get(path, { signal: aborter.signal }).then(({ body, text }) => setBefore({ parts: partsOf(body, text) }), (error) => aborter.signal.aborted || setBefore({ error }));
    return () => aborter.abort();
  }, [path]);
  const diff = useMemo(() => before?.parts && lineDiff(linesOf(before.parts), linesOf(parts)), [before, parts]);
  return html`<section class="card prompt-diff" aria-label="Difference">
    <header><h2 class="grow">From ${params.from} to ${params.at || (revision === undefined ? "the newest" : `revision ${count(revision)}`)}</h2>
      ${diff && html`<span class="num prompt-counts" role="status"><span class="added">+${count(diff.added)}</span> <span class="removed">−${count(diff.removed)}</span> <span class="muted">lines</span></span>`}
      <${Button} icon="close" kind="quiet" label="Show the prompt itself" onClick=${() => setParams({ from: null })} /></header>
    ${!before && html`<div class="body"><${Skeleton} /></div>`}
    ${before?.error && html`<div class="body"><${ProblemNote} error=${before.error} /></div>`}
    ${diff && (diff.added + diff.removed === 0 ? html`<${Empty} title="No difference"><p>With these options the prompt is the same at both.</p><//>` : html`<${Lines} diff=${diff} />`)}
  </section>`;
}

/** A prompt as lines that can be compared: its lists are indented, an image is one line. */
function linesOf(parts) {
  return parts
    .map((part) => {
      if (part.kind === "image") return imageLine(part);
      if (part.heading === undefined) return part.whole;
      const text = !part.isMarkdown && /^[[{]/.test(part.text) && part.text.length <= INDENTED_CHARS_MAX ? indent(part.text) : part.text;
      return text === "" ? `[${part.heading}:]` : `[${part.heading}:]\n${text}`;
    })
    .join("\n");
}

const SIGNS = { added: "+", removed: "−", same: " " };

function Lines({ diff }) {
  const [all, setAll] = useState(false);
  const shown = all ? diff.lines : diff.lines.slice(0, LINES_SHOWN);
  return html`<div class="diff" role="group" aria-label="Lines" tabindex="0">
    ${!diff.exact && html`<p class="muted small">Too much differs to compare by line in time.</p>`}
    ${shown.map(({ kind, text, count: folded }) => (kind === "fold"
      ? html`<div class="diff-fold">${count(folded)} unchanged ${folded === 1 ? "line" : "lines"}</div>`
      : html`<div class=${cx("diff-line", kind)}><span class="sign" aria-label=${kind === "same" ? undefined : kind}>${SIGNS[kind]}</span><bdi>${text.length > 4000 ? `${text.slice(0, 4000)}…` : text}</bdi></div>`))}
    ${shown.length < diff.lines.length && html`<p><${Button} onClick=${() => setAll(true)}>Show all ${count(diff.lines.length)} lines<//></p>`}
  </div>`;
}
