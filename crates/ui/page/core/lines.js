// The difference of two texts by lines: Myers' greedy algorithm, and what is unchanged folded around the changes.

/** The time for one difference; beyond, all that differs is shown as removed and added. */
const DIFF_MS = 3000;

/**
 * Compares two lists of lines. Returns `{runs, exact}`: runs `{kind: "same" | "removed" | "added", lines}` in their order. If `ms`
 * milliseconds are not enough, all between the common beginning and the common end is changed, and `exact` is false.
 */
export function compareLines(old, now, ms = DIFF_MS) {
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
  const [before, after] = [old, now].map((lines) => lines.slice(head, lines.length - tail));
  const edits = editsOf(before, after, performance.now() + ms);
  const runs = [];
  const put = (kind, lines) => {
    if (lines.length === 0) return;
    if (runs.at(-1)?.kind === kind) runs.at(-1).lines.push(...lines);
    else runs.push({ kind, lines: [...lines] });
  };
  put("same", old.slice(0, head));
  let at = 0;
  let to = 0;
  for (const { kind, from } of edits ?? []) {
    put("same", before.slice(at, from));
    to += from - at;
    at = from;
    put(kind, kind === "removed" ? [before[at++]] : [after[to++]]);
  }
  if (edits) put("same", before.slice(at));
  else {
    put("removed", before);
    put("added", after);
  }
  put("same", old.slice(old.length - tail));
  return { runs, exact: edits !== undefined };
}

/** The fewest edits that make one list of the other, `{kind, from}` with the place in the old one; undefined if the time is over. */
function editsOf(old, now, end) {
  // For each diagonal, how far its best path goes in the old list, and its last edit.
  const best = new Map([[1, { at: 0 }]]);
  let [least, most] = [-Infinity, Infinity];
  for (let cost = 0; performance.now() < end; cost += 1) {
    for (let diagonal = -cost; diagonal <= cost; diagonal += 2) {
      if (diagonal < least || diagonal > most) continue;
      const [below, above] = [best.get(diagonal - 1), best.get(diagonal + 1)];
      const removes = below !== undefined && !(below.at < above?.at);
      const { at: from, edit: before } = removes ? below : above;
      const edit = cost === 0 ? undefined : { kind: removes ? "removed" : "added", from, before };
      let at = removes ? from + 1 : from;
      while (at < old.length && at - diagonal < now.length && old[at] === now[at - diagonal]) at += 1;
      const [ends, endsNow] = [at >= old.length, at - diagonal >= now.length];
      if (ends && endsNow) return inOrder(edit);
      // Beyond the end of a list there is nothing to find.
      if (ends) most = Math.min(most, diagonal - 1);
      if (endsNow) least = Math.max(least, diagonal + 1);
      best.set(diagonal, { at, edit });
    }
  }
  return undefined;
}

function inOrder(last) {
  const edits = [];
  for (let edit = last; edit; edit = edit.before) edits.push(edit);
  return edits.reverse();
}

/**
 * Returns `{lines: [{kind: "same" | "added" | "removed" | "fold", text, count}], added, removed, exact}` with `context`
 * unchanged lines around each change.
 */
export function lineDiff(before, after, context = 3) {
  const { runs, exact } = compareLines(before.split("\n"), after.split("\n"));
  const sum = (kind) => runs.filter((run) => run.kind === kind).reduce((all, run) => all + run.lines.length, 0);
  return { lines: folded(runs, context), added: sum("added"), removed: sum("removed"), exact };
}

function folded(runs, context) {
  const lines = [];
  const put = (kind, some) => some.forEach((text) => lines.push({ kind, text }));
  runs.forEach(({ kind, lines: some }, index) => {
    const first = index === 0 ? 0 : context;
    const last = index === runs.length - 1 ? 0 : context;
    if (kind !== "same" || some.length <= first + last + 1) return put(kind, some);
    put(kind, some.slice(0, first));
    lines.push({ kind: "fold", count: some.length - first - last, text: "" });
    return put(kind, last > 0 ? some.slice(-last) : []);
  });
  return lines;
}
