// Screenshots over the slider, each near its place: a sample, whatever the length of the log.

import { board, get } from "../../core/api.js";
import { html, useEffect, useMemo, useRef, useState } from "../../core/dom.js";
import { time } from "../../core/format.js";
import { film, placeOf, spread } from "../../core/past.js";
import { useRead } from "../../core/resource.js";
import { imageSource, metadataText } from "../../core/shots.js";
import { Picture } from "../picture.js";

/** A log of up to so many screenshots is read in one page; of a longer one, so many are sampled one by one. */
const WHOLE_MAX = 1000;
const SAMPLES = 40;

/** The width of one picture with its gap, in pixels. */
const SLOT_PX = 92;

/** How long new screenshots are gathered. */
const GATHER_MS = 3000;

export function Film({ session, feed, oldest, head, at, onJump }) {
  const ref = useRef();
  const width = useWidth(ref);
  const entries = useSample(session, feed);
  const slots = Math.max(1, Math.floor(width / SLOT_PX));
  const shown = width === 0 ? [] : film(entries, oldest, head, slots);
  // The element stays, since its width is observed.
  const isEmpty = !entries.some((entry) => entry.revision >= oldest && entry.revision <= head);
  const current = shown.findLast((entry) => entry && entry.revision <= at)?.seq;
  return html`<div class=${isEmpty ? "film-none" : "film"} ref=${ref} role="group" aria-label="Screenshots over time">
    ${shown.map((entry, slot) => entry && html`<button type="button" key=${slot} class="film-shot" aria-current=${entry.seq === current ? "true" : undefined}
      style=${{ left: `${(slot / slots) * 100}%`, width: `${100 / slots}%` }} title=${`Revision ${entry.revision}, ${time(entry.at)}`}
      aria-label=${`Go to screenshot ${entry.seq}, revision ${entry.revision}${metadataText(entry.item) ? `: ${metadataText(entry.item).slice(0, 60)}` : ""}`} onClick=${() => onJump(entry.revision)}>
      <${Picture} entry=${entry} px=${160} />
    </button>`)}
    ${shown.map((entry, slot) => entry && html`<span key=${`tick ${slot}`} class="film-tick" aria-hidden="true" style=${{ left: `${placeOf(entry.revision, oldest, head) * 100}%` }}></span>`)}
  </div>`;
}

function useWidth(ref) {
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const observer = new ResizeObserver(([{ contentRect }]) => setWidth(contentRect.width));
    observer.observe(ref.current);
    return () => observer.disconnect();
  }, [ref.current]);
  return width;
}

/** Screenshots with images out of the whole log, read again where it changed. */
function useSample(session, feed) {
  const [version, setVersion] = useState(0);
  const { value: entries = [] } = useRead((signal) => sample(session, signal), [session, version], true);
  useEffect(() => {
    let timer;
    const end = feed.listen((commits) => {
      const touched = commits.length === 0 || commits.some((commit) => commit.changes.some((change) => change.log === "screenshots" || change.kind === "restored"));
      if (touched) timer ??= setTimeout(() => { timer = undefined; setVersion((n) => n + 1); }, GATHER_MS);
    });
    return () => {
      clearTimeout(timer);
      end();
    };
  }, [feed]);
  return useMemo(() => entries.filter((entry) => imageSource(entry)), [entries]);
}

async function sample(session, signal) {
  const read = async (query) => (await get(board(session, "screenshots"), { query: { keys: "metadata", ...query }, signal })).body;
  const newest = await read({ latest: 1 });
  const last = newest.entries[0]?.seq ?? 0;
  if (newest.count <= WHOLE_MAX) return newest.count === 0 ? [] : (await read({ limit: WHOLE_MAX })).entries;
  const found = new Map();
  // One after the other: a browser has few connections, and the board comes first.
  for (const seq of spread(last, SAMPLES)) {
    for (const entry of (await read({ after: seq - 1, limit: 1 })).entries) found.set(entry.seq, entry);
  }
  return [...found.values()];
}
