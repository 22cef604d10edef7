"""Vademecum: a person's documents and the memory of their conversations, on every device."""

import os

# Read when numpy is first imported. One thread a search: with more, users that ask at once wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The embedder has a thread a core already.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# Read when onnxruntime is first loaded, which otherwise writes a device id into the home folder and reports to its maker.
# Its own call to stop that comes too late. Not a default: nobody's environment may turn it on.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__version__ = "0.1.0"
