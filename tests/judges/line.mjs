// LINE's SDK for Node drives the fake, and accepts what the fake has signed.
import { createRequire } from "node:module";
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { strict as assert } from "node:assert";

const { JUDGES, API, TOKEN, SECRET, WEBHOOKS, REPLY_TOKEN, PICTURE } = process.env;
const require = createRequire(`${JUDGES}/node_modules/`);
const { messagingApi, validateSignature } = require("@line/bot-sdk");

let signed = 0;
for (const line of readFileSync(WEBHOOKS, "utf8").trimEnd().split("\n")) {
  const [signature, ...rest] = line.split(" ");
  const body = rest.join(" ");
  assert(validateSignature(body, SECRET, signature));
  assert(!validateSignature(`${body} `, SECRET, signature));
  signed += 1;
}
assert.equal(signed, 2);

const refused = async (call, status) => {
  await assert.rejects(call, (error) => error.status === status || error.statusCode === status);
};
const client = new messagingApi.MessagingApiClient({ channelAccessToken: TOKEN, baseURL: API });
const messages = [{ type: "text", text: "hello" }];
assert.equal((await client.getBotInfo()).displayName, "Agent");
const key = randomUUID();
assert.equal((await client.pushMessage({ to: "U1", messages }, key)).sentMessages.length, 1);
await refused(() => client.pushMessage({ to: "U1", messages }, key), 409);
await client.replyMessage({ replyToken: REPLY_TOKEN, messages });
await refused(() => client.replyMessage({ replyToken: REPLY_TOKEN, messages }), 400);
const blobs = new messagingApi.MessagingApiBlobClient({ channelAccessToken: TOKEN, baseURL: API });
const parts = [];
for await (const part of await blobs.getMessageContent(PICTURE)) parts.push(part);
assert.equal(Buffer.concat(parts).toString(), "a picture");
