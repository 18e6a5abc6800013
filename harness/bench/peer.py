"""Runs mini-swe-agent on one task, put together as its documentation shows it: its agent without a terminal, its model class
for tool calls, its Docker environment, and the templates that its command line uses by itself.

Takes a JSON object as its only argument: `address` and `model` of the endpoint, `image`, the `limits` of the container, `task`.
It keeps no trajectory on the disk, which only helps it. The client beneath makes no request a second time, which would hide
a fault of the bench.
"""

import json
import sys

import yaml
from minisweagent import package_dir
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.docker import DockerEnvironment
from minisweagent.models.litellm_model import LitellmModel

given = json.loads(sys.argv[1])
config = yaml.safe_load((package_dir / "config" / "mini.yaml").read_text())
endpoint = {"api_base": given["address"], "api_key": "sk-bench-0123456789", "max_retries": 0}
model = config["model"] | {"model_name": f"openai/{given['model']}"}
model["model_kwargs"] = model["model_kwargs"] | endpoint
environment = DockerEnvironment(
    image=given["image"], cwd="/workspace", run_args=given["limits"], **config["environment"]
)
agent = DefaultAgent(LitellmModel(**model), environment, **config["agent"])
ended = agent.run(given["task"])
if ended.get("exit_status") != "Submitted":
    sys.exit(f"mini-swe-agent ended with {ended}")
