"""LINE's own SDK drives the fake, reads what the fake sends, and LINE's description of its API judges both.

BODIES names a file with what the program sent: lines of a call's name and a body. WEBHOOKS names one with lines of a
signature and a body that the fake has signed.
"""

import os
import uuid
from pathlib import Path

import json
import yaml
from linebot.v3 import WebhookParser
from linebot.v3.exceptions import InvalidSignatureError
from linebot.v3.messaging import (
    ApiClient,
    ApiException,
    Configuration,
    MessagingApi,
    MessagingApiBlob,
    PushMessageRequest,
    ReplyMessageRequest,
    TextMessage,
)
from linebot.v3.webhooks import ImageMessageContent, MessageEvent, TextMessageContent
from openapi_schema_validator import OAS30Validator

DESCRIPTIONS = Path(__file__).parent / "line-openapi"


def description(name):
    return yaml.safe_load((DESCRIPTIONS / name).read_text())


def fits(document, schema, value):
    components = {"components": document["components"]}
    validator = OAS30Validator({"$ref": f"#/components/schemas/{schema}", **components})
    faults = [f"{schema}: {fault.message} at {list(fault.path)}" for fault in validator.iter_errors(value)]
    assert not faults, faults


def lines(name):
    for line in Path(os.environ[name]).read_text().splitlines():
        first, rest = line.split(" ", 1)
        yield first, rest


def refused(call, status):
    try:
        call()
    except ApiException as error:
        assert error.status == status, error
    else:
        raise AssertionError(f"it was not refused with {status}")


messaging, webhook = description("messaging-api.yml"), description("webhook.yml")
REQUESTS = {"push": ("PushMessageRequest", PushMessageRequest), "reply": ("ReplyMessageRequest", ReplyMessageRequest)}

sent = 0
for call, body in lines("BODIES"):
    schema, model = REQUESTS[call]
    value = json.loads(body)
    fits(messaging, schema, value)
    for message in value["messages"]:
        fits(messaging, "TextMessage", message)
    assert model.from_dict(value).to_dict()["messages"][0]["text"] == value["messages"][0]["text"]
    known = messaging["components"]["schemas"][schema]["properties"]
    assert set(value) <= set(known), set(value) - set(known)
    sent += 1
assert sent >= 4, sent

parser = WebhookParser(os.environ["SECRET"])
kinds = []
for signature, body in lines("WEBHOOKS"):
    fits(webhook, "CallbackRequest", json.loads(body))
    for event in json.loads(body)["events"]:
        fits(webhook, "MessageEvent", event)
    (event,) = parser.parse(body, signature)
    assert isinstance(event, MessageEvent) and event.reply_token and event.source.user_id
    kinds.append(type(event.message))
    for wrong in (signature[:-4] + "AAA=", signature.lower(), ""):
        try:
            parser.parse(body, wrong)
        except InvalidSignatureError:
            continue
        raise AssertionError(f"{wrong} was taken")
assert kinds == [TextMessageContent, ImageMessageContent], kinds

configuration = Configuration(host=os.environ["API"], access_token=os.environ["TOKEN"])
with ApiClient(configuration) as client:
    api = MessagingApi(client)
    assert api.get_bot_info().display_name == "Agent"
    text = [TextMessage(text="hello")]
    key = str(uuid.uuid4())
    assert api.push_message(PushMessageRequest(to="U1", messages=text), x_line_retry_key=key).sent_messages
    refused(lambda: api.push_message(PushMessageRequest(to="U1", messages=text), x_line_retry_key=key), 409)
    reply = ReplyMessageRequest(reply_token=os.environ["REPLY_TOKEN"], messages=text)
    assert api.reply_message(reply).sent_messages
    refused(lambda: api.reply_message(reply), 400)
    refused(lambda: api.push_message(PushMessageRequest(to="U1", messages=[TextMessage(text="x" * 5001)])), 400)
    assert bytes(MessagingApiBlob(client).get_message_content(os.environ["PICTURE"])) == b"a picture"
with ApiClient(Configuration(host=os.environ["API"], access_token="wrong")) as client:
    refused(lambda: MessagingApi(client).push_message(PushMessageRequest(to="U1", messages=text)), 401)
