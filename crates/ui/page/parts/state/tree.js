// The state's document as a tree of which only the visible rows are in the document (ARIA's tree pattern).

import { cx, html, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../../core/dom.js";
import { plural } from "../../core/format.js";
import { count, preview } from "../../core/state/json-tree.js";
import { filtered, idOf, openDepth, placesTo, rowsOf } from "../../core/state/tree.js";
import { Button, Empty } from "../basics.js";
import { Icon } from "../icon.js";
import { Rows } from "../rows.js";

const ROW_PX = 26;
const INDENT_PX = 16;

/** How long what changed stays lit. */
const LIT_MS = 2500;

/** Keys typed within so long are one beginning of a name. */
const TYPED_MS = 700;

/** In a tree of more values, a filter waits until typing rests. */
const LARGE_SIZE = 5000;
const REST_MS = 180;

/** Shows `tree` (`{root, n, changed}`); `selected` is a place or undefined. */
export function StateTree({ tree, filter: text, selected, onSelect, actions }) {
  const box = useRef();
  const wanted = useRested(text, tree.root.size > LARGE_SIZE ? REST_MS : 0);
  const filter = useMemo(() => filtered(tree.root, wanted), [tree.root, wanted]);
  const folding = useFolding(tree.root, selected);
  const rows = useMemo(() => rowsOf(tree.root, folding.isOpen, filter), [tree.root, filter, folding.n]);
  const lit = useLit(tree);
  const [reveal, setReveal] = useState(undefined);
  const id = selected && idOf(selected);
  const at = useMemo(() => (id === undefined ? -1 : rows.findIndex((row) => row.id === id)), [rows, id]);
  const choose = (index) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, index))];
    if (!row) return;
    setReveal(rows.indexOf(row));
    onSelect(row.place);
  };
  useEffect(() => setReveal(undefined), [reveal]);
  useEffect(() => {
    if (at >= 0) setReveal(at);
  }, []);
  useSteadyScroll(box, rows, tree);
  const key = useKeys({ rows, at, choose, folding });
  const render = (index) => html`<${Row} row=${rows[index]} index=${index} on=${index === at} lit=${isLit(lit, rows[index])} isMatch=${filter?.matches.has(rows[index].id)}
    onToggle=${() => folding.toggle(rows[index])} onSelect=${() => onSelect(rows[index].place)} />`;
  return html`<section class="state-tree" aria-label="Document" ref=${box}>
    <div class="row state-tree-head">
      <span class="grow muted small" role="status">${filter ? `${plural(filter.matches.size, "match", "matches")} in ${plural(tree.root.size - 1, "value")}` : plural(tree.root.size - 1, "value")}</span>
      <${Button} kind="quiet" onClick=${() => folding.all(true)}>Expand all<//><${Button} kind="quiet" onClick=${() => folding.all(false)}>Collapse all<//>
      ${actions}
    </div>
    ${rows.length > 0
      ? html`<${Rows} class="state-rows" role="tree" label="State" count=${rows.length} height=${ROW_PX} render=${render} reveal=${reveal}
          aria-activedescendant=${at >= 0 ? `state-row-${at}` : undefined} onKeyDown=${key} />`
      : filter && html`<${Empty} title="Nothing matches"><p>The filter looks in paths and in values.</p><//>`}
  </section>`;
}

/** A value that changed and then rested for so long; at once for 0. */
function useRested(value, ms) {
  const [rested, setRested] = useState(value);
  useEffect(() => {
    if (ms === 0) return undefined;
    const timer = setTimeout(() => setRested(value), ms);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return ms === 0 ? value : rested;
}

function Row({ row, index, on, lit, isMatch, onToggle, onSelect }) {
  const { node, key, nested, open, level } = row;
  return html`<div id=${`state-row-${index}`} class=${cx("state-row", on && "on", lit && "lit", isMatch && "is-match")} role="treeitem" aria-level=${level} aria-setsize=${row.of}
      aria-posinset=${row.position} aria-selected=${String(on)} aria-expanded=${nested ? String(open) : undefined}
      style=${{ paddingLeft: `${(level - 1) * INDENT_PX + 8}px` }} onClick=${onSelect} onDblClick=${nested ? onToggle : undefined} data-path=${row.id}>
    <span class="twisty" onClick=${(event) => { event.stopPropagation(); if (nested) onToggle(); }}>${nested && html`<${Icon} name=${open ? "down" : "right"} />`}</span>
    <bdi class=${cx("key", typeof key === "number" && "index")}>${key === "" ? '""' : short(String(key))}</bdi>${" "}
    ${nested
      ? html`<span class="badge">${node.kind === "object" ? `{${count(node)}}` : `[${count(node)}]`}</span>${!open && html`<bdi class="value muted">${preview(node, 120)}</bdi>`}`
      : html`<bdi class=${`value of-${node.kind}`}>${preview(node, 300)}</bdi>`}
  </div>`;
}

function short(key) {
  return key.length > 120 ? `${key.slice(0, 119)}…` : key;
}

/** What is open: as deep as fits at first, then as one wishes. */
function useFolding(root, selected) {
  const [n, setN] = useState(0);
  const held = useRef();
  held.current ??= { depth: openDepth(root), own: new Map(above(selected).map((id) => [id, true])) };
  const { own } = held.current;
  const tell = () => setN((before) => before + 1);
  useEffect(() => {
    const closed = above(selected).filter((id) => own.get(id) === undefined || !own.get(id));
    if (closed.length === 0) return;
    for (const id of closed) own.set(id, true);
    tell();
  }, [selected && idOf(selected)]);
  return {
    n,
    isOpen: (id, level, isFiltered) => own.get(id) ?? (isFiltered || level <= held.current.depth),
    toggle: ({ id, open }) => {
      own.set(id, !open);
      tell();
    },
    set: (rows, open) => {
      for (const row of rows) own.set(row.id, open);
      tell();
    },
    all: (open) => {
      own.clear();
      held.current.depth = open ? Infinity : 0;
      tell();
    },
  };
}

/** The containers above a place. */
function above(place) {
  return place ? placesTo(place).slice(0, -1).map(idOf) : [];
}

/** The places that changed a moment ago. */
function useLit(tree) {
  const [lit, setLit] = useState(new Set());
  useEffect(() => {
    if (tree.changed.size === 0) return undefined;
    setLit((before) => new Set([...before, ...tree.changed]));
    const timer = setTimeout(() => setLit(new Set()), LIT_MS);
    return () => clearTimeout(timer);
  }, [tree.n]);
  return lit;
}

function isLit(lit, row) {
  if (lit.size === 0) return false;
  if (lit.has(row.id)) return true;
  if (!row.nested || row.open) return false;
  for (const id of lit) if (id.startsWith(`${row.id}/`)) return true;
  return false;
}

/** Keeps the row at the top of the visible part where it is when rows come or go above it. */
function useSteadyScroll(box, rows, tree) {
  const held = useRef({});
  useLayoutEffect(() => {
    const list = box.current?.querySelector(".state-rows");
    if (!list) return;
    const { id, offset, n } = held.current;
    if (id !== undefined && n !== tree.n) {
      const index = rows.findIndex((row) => row.id === id);
      if (index >= 0 && list.scrollTop > 0) list.scrollTop = index * ROW_PX + offset;
    }
    const note = () => {
      const index = Math.floor(list.scrollTop / ROW_PX);
      held.current = { id: rows[index]?.id, offset: list.scrollTop - index * ROW_PX, n: tree.n };
    };
    note();
    list.addEventListener("scroll", note, { passive: true });
    return () => list.removeEventListener("scroll", note);
  }, [rows, tree.n]);
}

function useKeys({ rows, at, choose, folding }) {
  const typed = useRef({ text: "", at: 0 });
  const page = 20;
  const row = rows[at];
  const moves = {
    ArrowDown: () => choose(at + 1),
    ArrowUp: () => choose(at < 0 ? 0 : at - 1),
    PageDown: () => choose(at + page),
    PageUp: () => choose(at - page),
    Home: () => choose(0),
    End: () => choose(rows.length - 1),
    ArrowRight: () => row?.nested && (row.open ? rows[at + 1]?.parent === at && choose(at + 1) : folding.toggle(row)),
    ArrowLeft: () => row && (row.nested && row.open ? folding.toggle(row) : row.parent >= 0 && choose(row.parent)),
    Enter: () => row?.nested && folding.toggle(row),
    " ": () => row?.nested && folding.toggle(row),
    "*": () => row && folding.set(rows.filter((one) => one.parent === row.parent && one.nested), true),
  };
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const move = moves[event.key];
    if (!move && !(event.key.length === 1 && /[\p{L}_]/u.test(event.key))) return;
    event.preventDefault();
    event.stopPropagation();
    if (move) return void move();
    const now = Date.now();
    typed.current = { text: (now - typed.current.at < TYPED_MS ? typed.current.text : "") + event.key.toLowerCase(), at: now };
    const from = typed.current.text.length > 1 ? at : at + 1;
    const order = [...rows.slice(Math.max(0, from)), ...rows.slice(0, Math.max(0, from))];
    const found = order.find((one) => String(one.key).toLowerCase().startsWith(typed.current.text));
    if (found) choose(rows.indexOf(found));
  };
}
