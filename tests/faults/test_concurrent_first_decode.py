"""Engines that decode files in threads create their msgspec decoders at import.

msgspec prepares a type when it is first decoded, and other threads can see the unfinished state. The process can crash
if several threads decode the same type for the first time.
"""

from __future__ import annotations

import re

from faults.server_process import ROOT

ENGINES = ROOT / "server" / "vademecum" / "engines"
THREADED_FILES = [*ENGINES.glob("lance/*.py"), *ENGINES.glob("duckdb/*.py"), ENGINES / "onnx" / "manifest.py"]


def test_engines_that_decode_in_threads_create_decoders_at_import():
    texts = {path: path.read_text(encoding="utf-8") for path in THREADED_FILES}
    assert len(texts) > 10
    assert [path for path, text in texts.items() if re.search(r"\.decode\([^\n]*type=", text)] == []
