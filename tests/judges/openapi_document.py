"""Validates the OpenAPI document of the program, and its answers against their schemas."""

import json
import os
import urllib.error
import urllib.request

from jsonschema import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator

DASHBOARD, TOKEN = os.environ["DASHBOARD"], os.environ["TOKEN"]


def ask(path):
    request = urllib.request.Request(DASHBOARD + path, headers={"Authorization": f"Bearer {TOKEN}"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.headers["Content-Type"], answer.read()
    except urllib.error.HTTPError as refused:
        return refused.code, refused.headers["Content-Type"], refused.read()


status, _, body = ask("/api/openapi.json")
assert status == 200, status
document = json.loads(body)
OpenAPIV31SpecValidator(document).validate()


def check(schema, value):
    Draft202012Validator({"allOf": [schema], "components": document["components"]}).validate(value)


checked = 0
for path, operations in document["paths"].items():
    if "get" not in operations or "{" in path or "events" in path or "examination" in path:
        continue
    answer = operations["get"]["responses"]["200"].get("content", {})
    status, kind, body = ask(path)
    assert status == 200, (path, status)
    if "application/json" in answer:
        check(answer["application/json"]["schema"], json.loads(body))
        checked += 1
    # A parameter that there is not is refused as the document says.
    if path.startswith("/api/") and "openapi" not in path:
        status, kind, body = ask(path + "?no-such-parameter=1")
        assert (status, kind) == (400, "application/problem+json"), (path, status, kind)
        check(document["components"]["schemas"]["Problem"], json.loads(body))
assert checked >= 5, checked
