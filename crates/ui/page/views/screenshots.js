// The screenshots of a session: a gallery, and one or two of them large.

import { board } from "../core/api.js";
import { place, setParams } from "../core/address.js";
import { cx, html, useLayoutEffect, useMemo, useRef } from "../core/dom.js";
import { useFeed } from "../core/feed.js";
import { touches, useResource } from "../core/resource.js";
import { Gallery } from "../parts/screenshots/gallery.js";
import { useGalleryLog } from "../parts/screenshots/gallery-log.js";
import { Viewer } from "../parts/screenshots/viewer.js";

export function Screenshots({ session, scroller }) {
  const { order = "newest", agent = "", shot } = place.value.params;
  const feed = useFeed(session);
  const log = useGalleryLog(session, order !== "oldest", agent, feed);
  const registered = useResource(board(session, "agents"), { feed, on: touches({ agents: true }) });
  const seen = useRef(new Set());
  const agents = useMemo(() => {
    for (const entry of log.entries.value) if (entry.agent) seen.current.add(entry.agent);
    for (const one of registered.data?.agents ?? []) seen.current.add(one.agent);
    return [...seen.current];
  }, [log.entries.value, registered.data]);
  // The place in the gallery is kept while one screenshot is shown large.
  const scrollTop = useRef(0);
  const focus = useRef();
  const viewed = shot !== undefined;
  useLayoutEffect(() => {
    if (viewed) scroller.current.scrollTop = 0;
  }, [viewed]);
  useLayoutEffect(() => {
    scrollTop.current = 0;
  }, [log]);
  const close = () => {
    focus.current = shot;
    setParams({ shot: null, with: null, diff: null }, { replace: false });
  };
  return html`<div class=${cx("view", "screenshots", viewed && "viewing")}>
    ${viewed
      ? html`<${Viewer} session=${session} feed=${feed} onClose=${close} />`
      : html`<${Gallery} session=${session} log=${log} scroller=${scroller} agents=${agents} focus=${focus} scrollTop=${scrollTop} />`}
  </div>`;
}
