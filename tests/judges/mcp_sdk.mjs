// The official SDK for TypeScript drives `coding-agent mcp`.
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const require = createRequire(`${process.env.JUDGES}/`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

async function connected(config) {
  const client = new Client({ name: "judge", version: "1.0.0" });
  const transport = new StdioClientTransport({
    command: process.env.PROGRAM,
    args: ["--config", config, "mcp"],
    env: { PATH: process.env.PATH },
    stderr: "inherit",
  });
  await client.connect(transport);
  return client;
}

const client = await connected(process.env.CONFIG);
const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name).sort(), ["evaluate_document", "evaluate_documents", "search_code"]);

// The SDK checks structured content against the tool's output schema.
const heard = [];
const good = await client.callTool({ name: "evaluate_document", arguments: { content: "A good plan." } }, undefined, {
  onprogress: (progress) => heard.push(progress),
});
assert.equal(good.structuredContent.passed, true);
assert.equal(good.structuredContent.score, 9);
assert.match(good.content[0].text, /^# Passed/);
assert.ok(heard.length > 0);

const bad = await client.callTool({ name: "evaluate_document", arguments: { content: "A bad plan." } });
assert.equal(bad.structuredContent.passed, false);
assert.deepEqual(bad.structuredContent.blockers.map((blocker) => blocker.claim), ["It does nothing"]);

const both = await client.callTool({
  name: "evaluate_documents",
  arguments: { documents: [{ content: "A good plan." }, { content: "A bad plan." }] },
});
assert.deepEqual(both.structuredContent.evaluations.map((each) => each.passed), [true, false]);

for (const [name, args, code] of [
  ["evaluate_document", {}, -32602],
  ["evaluate_nothing", {}, -32602],
  ["evaluate_document", { content: "An unreadable plan." }, -32603],
]) {
  await assert.rejects(client.callTool({ name, arguments: args }), (error) => {
    assert.equal(error.code, code);
    assert.match(error.data.formatted, /^# Evaluation failed/);
    return true;
  });
}
await client.close();

// The Rust side of this test sees the model's call end.
const hanging = await connected(process.env.HANGING);
const giveUp = new AbortController();
const call = hanging.callTool({ name: "evaluate_document", arguments: { content: "Any plan." } }, undefined, {
  signal: giveUp.signal,
});
setTimeout(() => giveUp.abort(), 3000);
await assert.rejects(call);
assert.equal((await hanging.listTools()).tools.length, 3);
await new Promise((done) => setTimeout(done, 2000));
await hanging.close();
