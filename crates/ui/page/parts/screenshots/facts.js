// Beside a large screenshot: its metadata, its addresses, and the commits around it.

import { board, curl, get } from "../../core/api.js";
import { absolute, href } from "../../core/address.js";
import { cx, html } from "../../core/dom.js";
import { bytes, fullTime, short, time } from "../../core/format.js";
import { useRead } from "../../core/resource.js";
import { imageSource, labelText } from "../../core/shots.js";
import { rows } from "../../core/timeline.js";
import { Agent, Ago, ButtonLink, Copy, Long, ProblemNote, Skeleton } from "../basics.js";
import { openHref } from "../entry.js";
import { target, title } from "../group.js";
import { Icon } from "../icon.js";
import { Json } from "../json.js";

/** The revisions before and after the screenshot's that are shown. */
const AROUND = 6;

/** The most rows of them: a commit may have many. */
const ROWS_MAX = 24;

/** Longer metadata is cut until one asks for all. */
const METADATA_CHARS = 1500;

export function ShotFacts({ session, entry, around }) {
  const { seq, item, image, agent, at, revision } = entry;
  const label = labelText(item);
  const source = imageSource(entry);
  const path = board(session, "screenshots", String(seq));
  return html`<section class="stack shot-facts">
    <div class="row"><h2 class="grow">Screenshot ${seq}</h2>
      <${Copy} icon="link" label="Copy link" text=${() => absolute(href("screenshots", session, { shot: seq }))} />
      <${Copy} icon="terminal" label="Copy as curl" text=${() => (image ? `${curl(image.url)} -o screenshot-${seq}` : curl(path))} />
    </div>
    <dl class="facts">
      <dt>Agent</dt><dd><${Agent} name=${agent} /></dd>
      <dt>At</dt><dd title=${fullTime(at)}>${fullTime(at)} <span class="muted nowrap">(<${Ago} at=${at} />)</span></dd>
      ${image?.width && html`<dt>Size</dt><dd class="num">${image.width} × ${image.height} · ${bytes(image.bytes)}</dd>`}
      ${!image && source && html`<dt>Image</dt><dd>kept as text, since its data URL is not in canonical form: it has no address</dd>`}
      ${image && html`<dt>Type</dt><dd>${image.media_type}</dd>`}
      ${label && image && html`<dt>Label</dt><dd class="mono"><bdi>${short(label, 400)}</bdi></dd>`}
      <dt>Revision</dt><dd><a href=${href("past", session, { at: revision })}>${revision}</a></dd>
    </dl>
    <${Metadata} value=${item.metadata} />
    <div class="row wrap">
      <${ButtonLink} icon="timeline" href=${href("timeline", session, { around: revision })}>Timeline<//>
      <${ButtonLink} icon="expand" href=${openHref(`screenshots/${seq}`)}>JSON<//>
      ${source && html`<${ButtonLink} icon="download" href=${source} download=${`screenshot-${seq}`} label="Download the image" />`}
    </div>
    ${around && html`<${Around} session=${session} revision=${revision} />`}
  </section>`;
}

function Metadata({ value }) {
  if (value === undefined || value === null || value === "") return html`<p class="muted small">No metadata.</p>`;
  if (typeof value !== "string") return html`<div class="shot-metadata"><${Json} value=${value} max=${METADATA_CHARS} /></div>`;
  return html`<div class="shot-metadata"><${Long} text=${value} max=${METADATA_CHARS} /></div>`;
}

/** The commits a few revisions before and after. */
function Around({ session, revision }) {
  const { value: read, error } = useRead((signal) => get(board(session, "events"), { query: { after: Math.max(0, revision - AROUND - 1) }, signal }), [session, revision]);
  const { events = [], resync } = read?.body ?? {};
  const found = events.filter((commit) => commit.revision <= revision + AROUND).flatMap(rows).filter((row) => !row.hidden);
  const middle = Math.max(0, found.findIndex((row) => row.revision >= revision) - ROWS_MAX / 2);
  return html`<div class="stack around"><h3>Around it</h3>
    <${ProblemNote} error=${error} />
    ${!read && !error && html`<${Skeleton} lines=${5} />`}
    ${resync && html`<p class="muted small">The commits of that time are compacted.</p>`}
    <ol>${found.slice(middle, middle + ROWS_MAX).map((row) => html`<li key=${row.id} class=${cx("around-row", row.revision === revision && "around-here")}>
      <a class="num small" href=${href("timeline", session, { around: row.revision })} title=${`Revision ${row.revision} in the timeline, ${fullTime(row.at)}`}>${time(row.at)}</a>
      <${Icon} name=${row.kind} label=${row.kind} />
      <a class="around-text" href=${openHref(target(row))}>${short(title(row), 140)}</a>
    </li>`)}</ol>
  </div>`;
}
