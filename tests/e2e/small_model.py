"""Write models with random weights into a folder: `python small_model.py FOLDER [--smallest]`.

With `--smallest`, write one model of 200 kB, which pages load at once. Otherwise write a model of 4 MB, which is
downloaded quickly but in several pieces, and a model of 200 kB named "before", which stands for an earlier model.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

sys.path.insert(0, str(Path(__file__).parents[1]))

from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download

if __name__ == "__main__":
    several = (("e5-small-v2", 2**16), ("before", 2**10))
    for name, words in (("e5-small-v2", 2**10),) if "--smallest" in sys.argv else several:
        with TemporaryDirectory() as source:
            known = write_source(Path(source), name=name, vocab_size=words)
            download.prepare_from_folder(known, Path(source), Path(sys.argv[1]))
