// From commits to what the timeline shows: one row for each thing that happened, and groups of rows that belong together
// (a question with its answer, a request with its claims and result, a step with its memory and the screenshots that it names).
//
// Pure functions and one class without a browser, so that tests run them in Node.

import { pairs } from "./format.js";
import { numberOf } from "./json.js";
import { concerns } from "./past.js";
import { imageSource } from "./shots.js";

/** A memory joins the step that its agent took at most so long before. */
const STEP_MS = 120_000;

/** The most rows of one group; a step that gets more begins another group. */
const GROUP_ROWS_MAX = 200;

/** The members of a step that name a screenshot: its seq, or what its `image_path` is. */
const LINKS = ["screenshot", "image_path", "screenshot_path", "path"];

/** The kinds of rows that one can filter by, with their names. */
export const KINDS = {
  request: "Requests",
  step: "Steps",
  question: "Questions",
  screenshot: "Screenshots",
  memory: "Memory",
  message: "Messages",
  state: "State",
  status: "Statuses",
  history: "History",
};

/** The member of an item with one of these names, whatever their case. */
export function member(item, ...names) {
  if (item === null || typeof item !== "object") return undefined;
  for (const name of names) if (item[name] !== undefined) return item[name];
  const lower = names.map((name) => name.toLowerCase());
  for (const [name, value] of Object.entries(item)) if (lower.includes(name.toLowerCase())) return value;
  return undefined;
}

/** The members of an item that its text is made of, by kind of log. A request may have `request_0`, `request_1`, … instead. */
export const TEXT_NAMES = {
  questions: ["question", "text"],
  requests: ["request", "text", "description", "name", "title"],
  trajectories: ["thought", "observation", "subtask", "action", "text", "key", "value"],
  screenshots: ["metadata", "image_path"],
  memory: ["thought", "observation", "subtask", "action", "text"],
  messages: ["text", "subject"],
};

/** The text that stands for an item of a log. */
export function itemText(log, item) {
  if (item === undefined) return "";
  const kind = ownedLog(log)?.name ?? log;
  const names = TEXT_NAMES[kind] ?? [];
  const first = kind === "screenshots"
    ? names.map((name) => pairs(item[name])).find(Boolean)
    : member(item, ...names) ?? (kind === "requests" ? numbered(item, "request") : undefined);
  if (first !== undefined && first !== null && first !== "") return textOf(first);
  const isImage = kind === "screenshots" && imageSource({ item }) !== undefined;
  const any = Object.entries(item ?? {}).find(([name, value]) => typeof value === "string" && value !== "" && !(isImage && name === "image_str"))?.[1];
  return any ?? (isImage ? "" : JSON.stringify(item));
}

function numbered(item, stem) {
  const name = Object.keys(item).find((key) => key.startsWith(`${stem}_`));
  return name && item[name];
}

function textOf(value) {
  return typeof value === "string" ? value : value === null || value === undefined ? "" : JSON.stringify(value);
}

/** The number that an item's member has, or undefined; the original writes costs and durations as numbers or texts. */
export function number(item, ...names) {
  const value = member(item, ...names);
  const n = typeof value === "string" ? Number.parseFloat(value) : numberOf(value);
  return Number.isFinite(n) ? n : undefined;
}

/** The agent that an item names, as a text. */
export function agentOf(item) {
  const name = member(item, "agent", "Agent");
  return name === undefined || name === null ? undefined : textOf(name);
}

/** The screenshots that a step's item names, by seq or `image_path`; a list names several. */
export function links(item) {
  return LINKS.flatMap((name) => member(item, name) ?? []).map((one) => numberOf(one) ?? one).filter((one) => Number.isInteger(one) || (typeof one === "string" && one !== ""));
}

/**
 * The rows of a commit. A row is `{id, revision, at, agent, type, kind, key, log, seq, item, change, text}`. Its id begins with the
 * commit's `id`, or with its revision if it has none.
 */
export function rows(commit) {
  const found = [];
  const add = (row) =>
    found.push({ id: `${commit.id ?? commit.revision}:${found.length}`, revision: commit.revision, at: commit.at, agent: commit.agent, trace: commit.trace, isOfLog: commit.isOfLog, ...row });
  for (const change of commit.changes) {
    const make = CHANGES[change.kind];
    if (make) make(change, add, commit);
    else add({ type: change.kind, kind: "history", key: undefined, change });
  }
  return found;
}

const LOG_ROWS = {
  questions: { type: "question", kind: "question" },
  requests: { type: "request", kind: "request" },
  trajectories: { type: "step", kind: "step" },
  screenshots: { type: "screenshot", kind: "screenshot" },
  memory: { type: "memory", kind: "memory" },
  messages: { type: "message", kind: "message" },
};

/** The kinds of entries that later commits change, which have a group each. */
const KEYED = ["question", "request", "message"];

function logRow(log) {
  return LOG_ROWS[log] ?? LOG_ROWS[ownedLog(log)?.name] ?? LOG_ROWS.memory;
}

/** The owner and the name of an agent's log, `{agent, name}` with the name "memory" or "messages"; undefined for a log of the board. */
export function ownedLog(log) {
  const found = /^agents\/(.*)\/(\w+)$/s.exec(log);
  return found ? { agent: found[1], name: found[2] } : undefined;
}

const CHANGES = {
  appended(change, add) {
    const entries = change.entries ?? range(change);
    for (const entry of entries) {
      const base = logRow(change.log);
      const own = KEYED.includes(base.type) ? `${change.log}/${entry.seq}` : undefined;
      add({
        ...base,
        key: own,
        log: change.log,
        seq: entry.seq,
        item: entry.item,
        image: entry.image,
        agentOf: ownedLog(change.log)?.agent ?? agentOf(entry.item),
        change,
      });
    }
  },
  updated(change, add) {
    const base = logRow(change.log);
    const answered = change.log === "questions" && member(change.item, "answer") !== undefined;
    add({
      ...base,
      type: answered ? "answer" : "edited",
      key: `${change.log}/${change.seq}`,
      log: change.log,
      seq: change.seq,
      item: change.item,
      change,
    });
  },
  acked: (change, add) =>
    add({ type: "acked", kind: "message", key: `${change.log}/${change.seq}`, log: change.log, seq: change.seq, agentOf: ownedLog(change.log)?.agent, change }),
  removed: (change, add) => add({ type: "removed", kind: logRow(change.log).kind, log: change.log, change }),
  cleared: (change, add) => add({ type: "cleared", kind: change.log ? logRow(change.log).kind : "history", log: change.log, change }),
  awaited: (change, add) => {
    for (let seq = change.first; seq <= Math.min(change.last, change.first + 99); seq += 1) {
      add({ type: "awaited", kind: "question", key: `questions/${seq}`, log: "questions", seq, change, hidden: true });
    }
  },
  question_expired: (change, add) =>
    add({ type: "expired", kind: "question", key: `questions/${change.question}`, log: "questions", seq: change.question, change }),
  planned: (change, add) => {
    for (let seq = change.first; seq <= Math.min(change.last, change.first + 99); seq += 1) {
      add({ type: "planned", kind: "request", key: `requests/${seq}`, log: "requests", seq, change, hidden: true });
    }
  },
  claimed: (change, add) => work("claim", change, add),
  released: (change, add) => work("released", change, add),
  finished: (change, add) => work("done", change, add),
  failed: (change, add) => work("failed", change, add),
  retried: (change, add) => work("retried", change, add),
  claim_expired: (change, add) => work("lapsed", change, add),
  cancel_requested: (change, add) => work("cancelling", change, add),
  cancelled: (change, add) => work("cancelled", change, add),
  verdict: (change, add) => work(change.accept ? "accepted" : "refused", change, add),
  deadline_passed: (change, add) => work("late", change, add),
  due: ({ requests, ...change }, add) => {
    for (const [first, last] of requests) {
      for (let seq = first; seq <= Math.min(last, first + 99); seq += 1) work("due", { ...change, request: seq }, add);
    }
  },
  state_put: (change, add) => stateRow("put", change, add),
  state_set: (change, add) => stateRow("put", change, add),
  state_merged: (change, add) => stateRow("merged", change, add),
  state_appended: (change, add) => stateRow("appended", change, add),
  state_removed: (change, add) => stateRow("removed", change, add),
  state_expired: (change, add) => stateRow("expired", change, add),
  agent_put: (change, add) =>
    add({ type: "status", kind: "status", agentOf: change.agent, item: change.value, status: change.value?.status, change }),
  agent_removed: (change, add) => add({ type: "agent_removed", kind: "status", agentOf: change.agent, change }),
};

function work(type, change, add) {
  add({ type, kind: "request", key: `requests/${change.request}`, log: "requests", seq: change.request, agentOf: change.agent, change });
}

function stateRow(type, change, add) {
  add({ type: `state_${type}`, kind: "state", path: change.path, change });
}

/** The entries of a change that was too large for an event and has addresses instead. */
function range(change) {
  const found = [];
  for (let i = 0; i < Math.min(change.count ?? 0, 1000); i += 1) found.push({ seq: change.first + i });
  return found;
}

/** Kinds of rows that make a step, and kinds that a step's commit writes besides. */
const STEPS = ["step", "memory"];
const BESIDES = ["state", "status"];

/** Rows of commits in groups, each at the place of its first row; a screenshot stands with the step that names it. */
export class Groups {
  constructor() {
    this.list = [];
    this.byKey = new Map();
    /** The newest step group of each agent, which its memory joins. */
    this.steps = new Map();
    /** The newest screenshot of each seq and `image_path`, as `{row, group}`. */
    this.shots = new Map();
    /** The step groups, oldest first, that name a screenshot which has not come yet, by seq and `image_path`. */
    this.awaiting = new Map();
    /** The groups of questions that are open, by seq. */
    this.open = new Map();
    /** The names of all agents in the rows. */
    this.agents = new Set();
  }

  /** Takes newer commits. Returns the groups that are new or got rows. */
  push(commits) {
    const touched = new Set();
    for (const commit of commits) {
      let step;
      let beside;
      // What a step wrote besides stands below it.
      for (const row of rows(commit).sort((a, b) => BESIDES.includes(a.kind) - BESIDES.includes(b.kind))) {
        const besides = BESIDES.includes(row.kind) ? (step ?? (row.kind === "state" ? beside : undefined)) : undefined;
        const group = besides ?? this.place(row, step);
        if (row.type === "done" && isReviewed(group, row)) row.type = "result";
        group.rows.push(row);
        if (row.agent) this.agents.add(row.agent);
        if (typeof row.agentOf === "string") this.agents.add(row.agentOf);
        group.version += 1;
        touched.add(group);
        if (STEPS.includes(row.kind)) step ??= group;
        if (row.kind === "state" || row.kind === "screenshot") beside ??= group;
        if (row.type === "screenshot") for (const other of this.shown(row, group)) touched.add(other);
        if (STEPS.includes(row.type)) for (const other of this.link(row, group)) touched.delete(other);
        for (const other of this.ask(row, group)) touched.add(other);
      }
    }
    return touched;
  }

  /** Keeps which questions are open: `open` of their groups is the row that has the question. Yields the other groups that changed. */
  *ask(row, group) {
    const [{ type, log, seq }, isEnd] = [row, row.type === "answer" || row.type === "expired"];
    if (log === "questions" && (type === "question" || type === "edited") && member(row.item, "answer") === undefined) {
      group.open = row;
      this.open.set(seq, group);
    }
    if (!isEnd && type !== "removed" && type !== "cleared") return;
    for (const [asked, other] of isEnd ? [[seq, group]] : this.open) {
      if (!isEnd && !concerns(row.change, "questions", asked)) continue;
      other.open = undefined;
      this.open.delete(asked);
      other.version += 1;
      yield other;
    }
  }

  place(row, step) {
    if (row.key !== undefined) {
      const open = this.byKey.get(row.key);
      if (open) return open;
      const group = this.begin(row);
      this.byKey.set(row.key, group);
      return group;
    }
    const agent = row.agent ?? row.agentOf;
    if (row.type === "screenshot") return this.awaiting.get(row.seq)?.[0] ?? this.awaiting.get(row.item?.image_path)?.[0] ?? this.begin(row);
    if (STEPS.includes(row.type)) {
      // Those of one commit belong together, and at most one step is in a group.
      if (step && !(row.type === "step" && step.rows.some((other) => other.type === "step"))) return step;
      const before = this.steps.get(agent);
      if (before && joins(before, row)) return before;
      const group = this.begin(row);
      group.kind = row.kind;
      // A late memory of an earlier step leaves the last step to its own.
      if (row.type === "step") this.steps.set(agent, group);
      return group;
    }
    return this.begin(row);
  }

  /** Remembers a screenshot for the steps that will name it. Yields the other groups that waited for it, which show it too. */
  *shown(row, group) {
    const path = row.item?.image_path;
    const shot = { row, group };
    for (const name of path ? [row.seq, path] : [row.seq]) {
      this.shots.set(name, shot);
      for (const other of this.awaiting.get(name) ?? []) {
        if (other === group || other.also.includes(row)) continue;
        other.also.push(row);
        other.version += 1;
        yield other;
      }
      this.awaiting.delete(name);
    }
  }

  /** Brings the screenshots that a step names into its group. Yields the groups that are gone. */
  *link(step, group) {
    for (const name of links(step.item)) {
      const shot = this.shots.get(name);
      if (!shot) {
        if (!this.awaiting.has(name)) this.awaiting.set(name, []);
        this.awaiting.get(name).push(group);
      } else if (shot.group === group) continue;
      else if (shot.group.kind === "screenshot") {
        const from = shot.group;
        this.list.splice(this.list.lastIndexOf(from), 1);
        group.rows.unshift(...from.rows);
        group.version += from.version;
        shot.group = group;
        yield from;
      } else if (!group.also.includes(shot.row)) group.also.push(shot.row);
    }
  }

  begin(row) {
    // `also`: screenshots that the step names, and another step before it.
    const group = { key: row.id, revision: row.revision, at: row.at, agent: row.agent ?? row.agentOf, kind: row.kind, rows: [], also: [], version: 0 };
    this.list.push(group);
    return group;
  }
}

/** True if the result of a request waits for a verdict. A commit says only that the work is finished. */
function isReviewed(group, { change }) {
  return change.verdict === undefined && group.rows.some((other) => other.type === "planned" && other.change.review);
}

/** True if a row belongs to the step that its agent took before. */
function joins(group, row) {
  if (row.type === "step" || group.rows.length >= GROUP_ROWS_MAX) return false;
  const step = group.rows.find((other) => other.type === "step");
  if (!step || group.rows.some((other) => other.type === "memory")) return false;
  const [taken, remembered] = [number(step.item, "step"), number(row.item, "step")];
  if (taken !== undefined && remembered !== undefined && taken !== remembered) return false;
  return new Date(row.at) - new Date(group.at) <= STEP_MS;
}

/** True if a group passes the filters: `{agents, kinds, status, text}`, each empty for all. */
export function passes(group, { agents = [], kinds = [], statuses = [], text = "" }) {
  if (kinds.length > 0 && !group.rows.some((row) => kinds.includes(row.kind))) return false;
  if (agents.length > 0 && !group.rows.some((row) => agents.includes(row.agent) || agents.includes(row.agentOf))) return false;
  if (statuses.length > 0 && !group.rows.some((row) => statuses.includes(statusOf(row)))) return false;
  if (text === "") return true;
  const wanted = text.toLowerCase();
  return group.rows.some((row) => searched(row).includes(wanted));
}

/** The status that a row shows: an agent's, or that of a step's item. */
export function statusOf(row) {
  const status = row.status ?? member(row.item, "status");
  if (typeof status === "string") return status.toUpperCase();
  return { done: "FINISH", accepted: "FINISH", failed: "FAIL", late: "FAIL" }[row.type];
}

/** The text of a row in lower case, made once. */
function searched(row) {
  row.searched ??= JSON.stringify([row.agent, row.agentOf, row.path, row.item ?? row.change]).toLowerCase();
  return row.searched;
}
