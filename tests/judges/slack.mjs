// Slack's framework drives the fake by Socket Mode: it hears a mention, says something with a button in the thread, hears
// the press, and changes what it said. It also judges the fake's signatures.
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { strict as assert } from "node:assert";

const { JUDGES, API, APP_TOKEN, BOT_TOKEN, SECRET, SIGNED } = process.env;
const require = createRequire(`${JUDGES}/node_modules/`);
const { App, LogLevel, verifySlackRequest } = require("@slack/bolt");

const lines = readFileSync(SIGNED, "utf8").trimEnd().split("\n");
for (const line of lines) {
  const [timestamp, signature, ...rest] = line.split(" ");
  const body = rest.join(" ");
  const judge = (changed) =>
    verifySlackRequest({
      signingSecret: SECRET,
      body: changed,
      headers: { "x-slack-signature": signature, "x-slack-request-timestamp": Number(timestamp) },
    });
  judge(body);
  assert.throws(() => judge(`${body} `));
}
assert(lines.length > 0);

const app = new App({
  token: BOT_TOKEN,
  appToken: APP_TOKEN,
  socketMode: true,
  logLevel: LogLevel.ERROR,
  clientOptions: { slackApiUrl: API },
});
app.event("app_mention", async ({ event, say }) => {
  const button = { type: "button", action_id: "answer-0", text: { type: "plain_text", text: "Approve" }, value: "yes" };
  await say({
    text: "May it go on?",
    thread_ts: event.ts,
    blocks: [
      { type: "section", text: { type: "mrkdwn", text: "May it go on?" } },
      { type: "actions", elements: [button] },
    ],
  });
});
app.action("answer-0", async ({ ack, action, body, client }) => {
  await ack();
  await client.chat.update({ channel: body.container.channel_id, ts: body.container.message_ts, text: `You said ${action.value}.` });
});
await app.start();
