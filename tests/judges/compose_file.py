"""Judges a compose file by the specification's own schema."""

import json
import os

from jsonschema import Draft7Validator

schema = json.load(open(os.environ["SCHEMA"]))
assert schema["title"] == "Compose Specification", schema["title"]
Draft7Validator.check_schema(schema)
validator = Draft7Validator(schema)
faults = lambda file: [f"{fault.json_path}: {fault.message}" for fault in validator.iter_errors(file)]

file = json.loads(os.environ["COMPOSE_FILE"])
assert not faults(file), "\n".join(faults(file))

# The judge would notice.
file["services"]["coding-agent"]["mem_limits"] = "4g"
assert faults(file), "an unknown key passes"
