"""Threads of one server may be the first to read a file of a kind, several at once, as when two models are opened.

msgspec then crashes the process, now and then: it looks at a type when it first decodes it, and shows other threads what
it has not finished. So the engines that read in threads have their decoders made when they are imported.
"""

from __future__ import annotations

import re

from faults.server_process import ROOT

ENGINES = ROOT / "server" / "vademecum" / "engines"
IN_THREADS = [*ENGINES.glob("lance/*.py"), *ENGINES.glob("duckdb/*.py"), ENGINES / "onnx" / "manifest.py"]


def test_what_threads_read_has_a_decoder_from_the_beginning():
    texts = {path: path.read_text(encoding="utf-8") for path in IN_THREADS}
    assert len(texts) > 10
    assert [path for path, text in texts.items() if re.search(r"\.decode\([^\n]*type=", text)] == []
