#!/usr/bin/env bash
# Claude Code 2.1.332: a server that speaks 2025-11-25 and 2026-07-28 loses its channel, since the newer version is chosen.
#
# A channel is an MCP server that declares the capability claude/channel and wakes a session by notifications. Claude
# Code begins with server/discover. If the server answers that, the connection has version 2026-07-28, and its channel
# is left out, though the same server would do with initialize and 2025-11-25. The terminal does not say so: only the
# debug log does. The channels reference names no version of the protocol.
#
# Seen: one server that answers both, and one that rejects server/discover. The second one passes this check and meets
# the next, which asks Anthropic's service whether there are channels.
#   both generations: Channel notifications skipped: connection negotiated a modern protocol revision with no unsolicited notification path
#   initialize alone: Channel notifications skipped: channels feature is not currently available
# Expected: initialize for a server that is named by --channels or --dangerously-load-development-channels and offers
# both. Needs node 20, npm and util-linux, on Linux x64.
set -euo pipefail
at=$(mktemp -d)
trap 'rm -rf "$at"' EXIT
cd "$at"
npm install --no-audit --no-fund --ignore-scripts --prefix "$at/npm" \
  @anthropic-ai/claude-code-linux-x64@2.1.332 >"$at/installed" 2>&1
mkdir -p home work
cat >channel.mjs <<'NODE'
import { createInterface } from "node:readline";
const capabilities = { experimental: { "claude/channel": {} } };
const serverInfo = { name: "channel", version: "1" };
const _meta = { "io.modelcontextprotocol/serverInfo": serverInfo };
const supportedVersions = ["2025-11-25", "2026-07-28"];
const results = {
  initialize: { protocolVersion: "2025-11-25", capabilities, serverInfo },
  "server/discover": { resultType: "complete", supportedVersions, capabilities, ttlMs: 0, cacheScope: "private", _meta },
};
if (process.argv[2] === "initialize") delete results["server/discover"];
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method } = JSON.parse(line);
  if (id === undefined || method === undefined) continue;
  const error = { code: -32601, message: "no such method" };
  const answer = method in results ? { result: results[method] } : { error };
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
}
NODE
cat >home/.claude.json <<JSON
{"hasCompletedOnboarding":true,"theme":"dark","customApiKeyResponses":{"approved":["scripted"],"rejected":[]},
 "projects":{"$at/work":{"hasTrustDialogAccepted":true,"hasCompletedProjectOnboarding":true}}}
JSON
cd work
said() {
  cat >mcp.json <<JSON
{"mcpServers":{"channel":{"command":"$(command -v node)","args":["$at/channel.mjs","$1"]}}}
JSON
  # It stays until it is ended: what it says comes within seconds.
  env -i PATH="$PATH" HOME="$at/home" TERM=xterm-256color ANTHROPIC_API_KEY=scripted \
    ANTHROPIC_BASE_URL=http://127.0.0.1:9 CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1 DISABLE_AUTOUPDATER=1 \
    DISABLE_TELEMETRY=1 timeout 120 script --quiet --return --command \
    "$at/npm/node_modules/@anthropic-ai/claude-code-linux-x64/claude --mcp-config mcp.json --debug-file $at/$1.log \
    --dangerously-load-development-channels server:channel" /dev/null </dev/null >/dev/null 2>&1 &
  until grep -q "Channel notifications" "$at/$1.log" 2>/dev/null || ! kill -0 $! 2>/dev/null; do sleep 0.2; done
  kill $! 2>/dev/null || true
  wait $! || true
  grep -o "Channel notifications .*" "$at/$1.log" | head -1
}
{
  echo "both generations: $(said both)"
  echo "initialize alone: $(said initialize)"
} >../seen
cat ../seen
diff ../seen - <<'SEEN'
both generations: Channel notifications skipped: connection negotiated a modern protocol revision with no unsolicited notification path
initialize alone: Channel notifications skipped: channels feature is not currently available
SEEN
echo "as described"
