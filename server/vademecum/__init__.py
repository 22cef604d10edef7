"""Vademecum keeps a person's documents and the memory of their conversations on all their devices."""

import os

# numpy reads this variable at import. Each search uses one thread, so that concurrent searches do not wait for threads.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
# The embedder already uses one thread per core, so the tokenizers must not start their own.
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
# onnxruntime reads this variable when it is loaded. Otherwise it writes a device id into the home folder and sends
# telemetry, and its function that disables telemetry runs too late. The assignment overrides the environment.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__version__ = "0.1.0"
