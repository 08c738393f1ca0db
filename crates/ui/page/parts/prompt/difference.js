// The difference of a prompt between two revisions, by lines of its texts.

import { board, get, withQuery } from "../../core/api.js";
import { setParams } from "../../core/address.js";
import { html, useMemo, useState } from "../../core/dom.js";
import { count, short } from "../../core/format.js";
import { lineDiff } from "../../core/lines.js";
import { imageLine, partsOf, viewQuery } from "../../core/prompt/parts.js";
import { useRead } from "../../core/resource.js";
import { Button, Empty, ProblemNote, Skeleton } from "../basics.js";
import { DiffLines } from "../diff.js";
import { indent } from "../json.js";

/** The lines that are shown until one asks for more. */
const LINES_SHOWN = 2000;

/** The characters of a line that are shown. */
const LINE_CHARS = 4000;

/** Texts beyond this are compared as they are, not indented. */
const INDENTED_CHARS_MAX = 6_000_000;

export function Difference({ session, params, parts, revision }) {
  const path = withQuery(board(session, "prompt"), viewQuery(params, { at: params.from }));
  const { value: before, error } = useRead((signal) => get(path, { signal }), [path]);
  const diff = useMemo(() => before && lineDiff(linesOf(partsOf(before.body, before.text)), linesOf(parts)), [before, parts]);
  return html`<section class="card prompt-diff" aria-label="Difference">
    <header><h2 class="grow">From ${params.from} to ${params.at || (revision === undefined ? "the newest" : `revision ${count(revision)}`)}</h2>
      ${diff && html`<span class="num prompt-counts" role="status"><span class="added">+${count(diff.added)}</span> <span class="removed">−${count(diff.removed)}</span> <span class="muted">lines</span></span>`}
      <${Button} icon="close" kind="quiet" label="Show the prompt itself" onClick=${() => setParams({ from: null })} /></header>
    ${!before && html`<div class="body">${error ? html`<${ProblemNote} error=${error} />` : html`<${Skeleton} />`}</div>`}
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

function Lines({ diff }) {
  const [all, setAll] = useState(false);
  const { lines, exact } = diff;
  const shown = (all ? lines : lines.slice(0, LINES_SHOWN)).map((line) => ({ ...line, text: short(line.text, LINE_CHARS) }));
  return html`${!exact && html`<p class="muted small body">Too much differs to compare by line in time.</p>`}
    <${DiffLines} lines=${shown} label="Lines" />
    ${shown.length < lines.length && html`<p class="body"><${Button} onClick=${() => setAll(true)}>Show all ${count(lines.length)} lines<//></p>`}`;
}
