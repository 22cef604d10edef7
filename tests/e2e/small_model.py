"""Puts a random model of 9 MB into a folder: quickly downloaded, and in more than one piece."""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from unit.onnx.bert import write_source
from vademecum.engines.onnx import fetch

if __name__ == "__main__":
    with TemporaryDirectory() as source:
        known = write_source(Path(source), name="e5-small-v2", vocab_size=2**16)
        fetch.prepare_from_folder(known, Path(source), Path(sys.argv[1]))
