// Directives as requested and as obeyed, and an agent's path through its statuses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { askedAt, directive, segment, wantedOf } from "../../../crates/ui/page/core/agents/directives.js";
import { putsOf, transitions } from "../../../crates/ui/page/core/agents/transitions.js";

test("a directive is asked, then obeyed, then withdrawn, then over", () => {
  assert.equal(directive(true, undefined).phase, "asked");
  assert.equal(directive({ request: 3 }, true).phase, "obeyed");
  assert.equal(directive({ request: 3 }, true).asked.request, 3);
  assert.equal(directive(undefined, true).phase, "leaving");
  assert.equal(directive(null, null).phase, "none");
});

test("a failed read withdraws nothing, and a value that is absent asks nothing", () => {
  const asked = { paused: true };
  const failed = (status, current) => wantedOf({ loading: false, data: undefined, error: { status, current } }, asked);
  for (const status of [0, 429, 500, 503, 412]) assert.equal(failed(status), asked, String(status));
  assert.deepEqual(failed(412, { stopped: true }), { stopped: true });
  assert.deepEqual([failed(412, null), failed(404)], [{}, {}]);
  assert.equal(wantedOf({ loading: true }, asked), asked);
  assert.deepEqual([wantedOf({ loading: false }, asked), wantedOf({ loading: false, data: { paused: 1 } }, {})], [{}, { paused: 1 }]);
});

test("the newest commit that asked is found by the agent's name as a segment", () => {
  const commits = [1, 2, 3].map((revision) => ({ revision, at: `t${revision}`, agent: "HostAgent", changes: [{ kind: revision === 3 ? "state_removed" : "state_put", path: "agents/a~0b/paused" }] }));
  assert.equal(segment("a~b"), "a~0b");
  assert.deepEqual(askedAt(commits, "a~b", "paused"), { revision: 2, at: "t2", by: "HostAgent" });
  assert.equal(askedAt(commits, "a~b", "stopped"), undefined);
});

test("changes of a profile that leave the status are no transitions", () => {
  const commits = ["CONTINUE", "CONTINUE", "PENDING", undefined, "CONTINUE"].map((status, i) => ({
    revision: i + 1, at: `t${i}`, agent: "HostAgent", changes: [{ kind: "agent_put", agent: "A", value: { status } }, { kind: "agent_put", agent: "B", value: { status: "FAIL" } }],
  }));
  const way = transitions(putsOf(commits, "A"));
  assert.deepEqual(way.map(({ revision, from, to }) => [revision, from, to]), [[5, "PENDING", "CONTINUE"], [3, "CONTINUE", "PENDING"], [1, undefined, "CONTINUE"]]);
  assert.deepEqual(transitions(putsOf(commits, "A"), way[0]), []);
});
