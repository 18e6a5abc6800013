"""Runs mini-swe-agent on one task with a real model, put together as its documentation shows it, and tells what came of it.

Takes a JSON object on its standard input: `base`, `key` and `model` of the endpoint, whether it takes `native` calls, `temperature`,
`max_tokens`, `reply_seconds`, `image`, `run_args`, `task`, the `files` of the repository, and limits (`steps`, `seconds`). Prints a JSON
object: how it ended, `turns`, tokens, and the `files`.
"""

import base64
import io
import json
import subprocess
import sys
import tarfile

import yaml
from minisweagent import package_dir
from minisweagent.agents.default import DefaultAgent
from minisweagent.environments.docker import DockerEnvironment
from minisweagent.models.litellm_model import LitellmModel
from minisweagent.models.litellm_textbased_model import LitellmTextbasedModel

FOLDER = "/workspace/project"

given = json.loads(sys.stdin.read())
template = "mini.yaml" if given["native"] else "mini_textbased.yaml"
config = yaml.safe_load((package_dir / "config" / template).read_text())
endpoint = {"api_base": given["base"], "api_key": given["key"], "timeout": given["reply_seconds"], "max_tokens": given["max_tokens"]}
endpoint["max_retries"] = 0  # the client beneath would make each of the agent's own attempts three times
if given["temperature"] is not None:
    endpoint["temperature"] = given["temperature"]
model = config["model"] | {"model_name": f"openai/{given['model']}"}
model["model_kwargs"] = model.get("model_kwargs", {}) | endpoint
kind = LitellmModel if given["native"] else LitellmTextbasedModel
settings = config["environment"] | {"timeout": 120, "container_timeout": "2h"}
environment = DockerEnvironment(image=given["image"], cwd="/workspace", run_args=given["run_args"], **settings)


def inside(command, data=b""):
    run = ["docker", "exec", "--interactive", environment.container_id, "bash", "-c", command]
    return subprocess.run(run, input=data, capture_output=True, check=True, timeout=300).stdout


tar = io.BytesIO()
with tarfile.open(fileobj=tar, mode="w") as packed:
    for path, content in given["files"]:
        content = base64.b64decode(content)
        entry = tarfile.TarInfo(path)
        entry.size = len(content)
        entry.mode = 0o644
        packed.addfile(entry, io.BytesIO(content))
inside(f"mkdir -p {FOLDER} && cd {FOLDER} && tar -x --no-same-owner", tar.getvalue())
inside(f"cd {FOLDER} && git init -q && git add -A && git -c user.name=a -c user.email=a@example.com commit -qm All")
environment.config.cwd = FOLDER

limits = {"step_limit": given["steps"], "wall_time_limit_seconds": given["seconds"], "cost_limit": 0}
agent = DefaultAgent(kind(**model), environment, **(config["agent"] | limits))
try:
    ended = agent.run(given["task"]).get("exit_status", "")
except Exception as error:  # a window that is full, most of all
    ended = f"{type(error).__name__}: {error}"
used = [message.get("extra", {}).get("response") for message in agent.messages]
used = [response.get("usage") or {} for response in used if isinstance(response, dict)]
back = tarfile.open(fileobj=io.BytesIO(inside(f"cd {FOLDER} && git add -A && git ls-files -z | tar -c --null --ignore-failed-read -T -")))
files = {entry.name: back.extractfile(entry).read() for entry in back if entry.isfile()}
print(
    json.dumps(
        {
            "ended": ended,
            "turns": agent.n_calls,
            "input": sum(usage.get("prompt_tokens") or 0 for usage in used),
            "output": sum(usage.get("completion_tokens") or 0 for usage in used),
            "files": {path: base64.b64encode(content).decode() for path, content in files.items()},
        }
    )
)
