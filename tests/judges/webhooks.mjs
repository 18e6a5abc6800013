// Delivers the payloads that GitHub's SDK publishes, signed by that SDK, and deliveries signed by the library of
// Standard Webhooks, as GitLab signs. Prints how many were taken, and how long the slowest answer took.
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
import { strict as assert } from "node:assert";

const { JUDGES, DASHBOARD, GITHUB_SECRET, GITLAB_SECRET } = process.env;
const require = createRequire(`${JUDGES}/node_modules/`);
const { sign, verify } = await import(`${JUDGES}/node_modules/@octokit/webhooks-methods/dist-node/index.js`);
const { Webhook } = require("standardwebhooks");
const families = ["api.github.com", "ghes-31", "ghes-32", "ghes-33", "ghes-34", "ghes-35"];

let slowest = 0;
const deliver = async (forge, headers, body) => {
  const begun = performance.now();
  const answer = await fetch(`${DASHBOARD}/hooks/${forge}`, { method: "POST", headers: { "content-type": "application/json", ...headers }, body });
  const text = await answer.text();
  slowest = Math.max(slowest, performance.now() - begun);
  return { status: answer.status, text };
};

let taken = 0;
let refused = 0;
for (const family of families) {
  for (const event of require(`@octokit/webhooks-examples/${family}/index.json`)) {
    for (const example of event.examples) {
      const body = JSON.stringify(example);
      const headers = { "x-github-delivery": randomUUID(), "x-github-event": event.name };
      const good = await sign(GITHUB_SECRET, body);
      assert(await verify(GITHUB_SECRET, body, good));
      const answer = await deliver("github", { ...headers, "x-hub-signature-256": good }, body);
      assert.equal(answer.status, 202, `${family} ${event.name}: ${answer.text}`);
      taken += 1;
      const flipped = good.slice(0, -1) + (good.endsWith("0") ? "1" : "0");
      const others = [await sign("another secret", body), flipped, good.slice(0, -2), "", `sha1=${good.slice(7, 47)}`];
      const wrong = others[taken % others.length];
      const no = await deliver("github", { ...headers, "x-github-delivery": randomUUID(), "x-hub-signature-256": wrong }, body);
      assert.equal(no.status, 401, `${wrong}: ${no.text}`);
      refused += 1;
    }
  }
}

const hook = new Webhook(GITLAB_SECRET);
const body = JSON.stringify({ object_kind: "issue", object_attributes: { action: "update" } });
const signed = (id, at, text) => ({
  "x-gitlab-event": "Issue Hook",
  "webhook-id": id,
  "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
  "webhook-signature": hook.sign(id, at, text),
});
const now = new Date();
for (const [headers, text, status] of [
  [signed("msg_1", now, body), body, 202],
  [signed("msg_1", now, body), body, 202],
  [signed("msg_2", now, body), body.replace("update", "open"), 401],
  [signed("msg_3", new Date(now.getTime() - 3_600_000), body), body, 401],
  [{ "x-gitlab-event": "Issue Hook", "x-gitlab-token": "anything", "webhook-id": "msg_4" }, body, 401],
]) {
  const answer = await deliver("gitlab", headers, text);
  assert.equal(answer.status, status, answer.text);
}
console.log(`${taken} taken, ${refused} refused, slowest answer ${slowest.toFixed(1)} ms`);
