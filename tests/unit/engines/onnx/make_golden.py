"""Write `golden/*.json`: the vectors that the BERT of `transformers` computes in torch with random weights from a seed.

    PYTHONPATH=server:tests uv run --group reference python tests/unit/engines/onnx/make_golden.py

The files are committed, so that tests need neither torch nor these weights. The second shape is that of
E5-small, except for the number of layers and the length of the tables.
"""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers

from unit.engines.onnx.numpy_bert import config, random_weights
from vademecum.engines.onnx.bert_graph import BertConfig

GOLDEN = Path(__file__).parent / "golden"
SHAPES: dict[str, dict[str, object]] = {
    "small": {},
    "e5-shaped": {
        "hidden_size": 384,
        "num_hidden_layers": 2,
        "num_attention_heads": 12,
        "intermediate_size": 1536,
    },
}
SEED = 7
TEXTS = [[2, 3], [2, 17, 3], [2, *range(5, 40), 3], [2, *[9] * 60, 3], [2, *range(100, 40, -7), 119, 3]]


def shape_of(changes: dict[str, object]) -> BertConfig:
    fields = {key: value for key, value in config(**changes).items() if key != "type_vocab_size"}
    return BertConfig(**fields)  # type: ignore[arg-type]


def embed(changes: dict[str, object]) -> list[list[float]]:
    weights = random_weights(shape_of(changes), SEED)
    model = transformers.BertModel(transformers.BertConfig(**config(**changes)), add_pooling_layer=False)
    missing = model.load_state_dict({k: torch.from_numpy(v) for k, v in weights.items()}, strict=False)
    assert not missing.unexpected_keys and not [k for k in missing.missing_keys if "position_ids" not in k]
    model.eval().double()
    vectors = []
    with torch.no_grad():
        for ids in TEXTS:
            mean = model(input_ids=torch.tensor([ids])).last_hidden_state[0].mean(0)
            vectors.append((mean / mean.norm()).tolist())
    return vectors


def main() -> None:
    for name, changes in SHAPES.items():
        vectors = [[round(number, 9) for number in vector] for vector in embed(changes)]
        made_by = f"torch {torch.__version__}, transformers {transformers.__version__}"
        golden = {"madeBy": made_by, "seed": SEED, "changes": changes, "ids": TEXTS, "vectors": vectors}
        (GOLDEN / f"{name}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
