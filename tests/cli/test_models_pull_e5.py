"""`vademecum models pull` and `use` during searches, with a model of random weights that has the shape of E5."""

import threading
import time
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from cli.command_runner import MODELS, Home, live
from unit.engines.onnx import numpy_bert, random_e5
from unit.engines.onnx.local_hub import start_hub
from vademecum.cli.commands import main
from vademecum.engines.onnx import download, pinned_models
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.embedder import Embedder
from vademecum.model.schema import vector_codec

MINILM, E5 = pinned_models.ALL_MINILM.id, pinned_models.E5_SMALL.id
WHO = ("--user", "ada@example.org", "--session", "s1")
NOTES = {
    "bells": "The harbour bell rings at noon, and the ferry leaves.",
    "boiler": "The landlord mends the boiler within two weeks.",
    "eggs": "Beat four eggs with sugar until they are pale.",
    "roof": "Slates come loose in winter, and the gutter fills.",
    "tea": "Water for green tea should not quite boil.",
    "train": "The night train has no dining car any more.",
}


@pytest.fixture
def home(tmp_path):
    """Return a data folder that uses all-MiniLM."""
    models = tmp_path / "models"
    models.mkdir()
    (models / MINILM).symlink_to(MODELS / MINILM)
    there = Home(tmp_path / "data", {"models": str(models)})
    there.add("ada@example.org")
    return there


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    source = tmp_path_factory.mktemp("source")
    return random_e5.write_source(source, download.find_offline_weights()), source


def pull_by_command(home, published, monkeypatch):
    """Run `models pull` in this process, so that the test can replace the pinned hashes."""
    monkeypatch.setattr(pinned_models, "PINNED_MODELS", pinned_models.PINNED_MODELS | {E5: published[0]})
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    monkeypatch.setenv("VADEMECUM_MODELS", home.settings["models"])
    with start_hub(*published) as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.url)
        return CliRunner().invoke(main, ["models", "pull", E5, "--data", str(home.data)])


def write_notes(folder):
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / f"{name}.txt").write_text("\n\n".join(f"{n}. {text * 12}" for n in range(3)))
    return folder


class Searches:
    """Search repeatedly in a thread until the block ends, and collect the responses."""

    def __init__(self, client):
        self.client = client
        self.answers = []
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            body = {"query": "who mends the boiler", "sessionId": "s1"}
            self.answers.append(self.client.post("/v1/search", json=body))
            time.sleep(0.05)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join(60)


def test_pulled_e5_replaces_model_during_searches(home, published, tmp_path, monkeypatch):
    home.ok("import", write_notes(tmp_path / "papers"), *WHO)
    done = pull_by_command(home, published, monkeypatch)
    assert (done.exit_code, done.stdout) == (
        0,
        f"{E5} is installed in {home.settings['models']}/{E5}.\n",
    ), done.output
    model = manifests.load(Path(home.settings["models"], E5)).hash
    with home.serve() as server, server.client(home.token("ada@example.org")) as client:
        old = {row["model"] for row in live(client, "vectorEmbeddings").values()}
        with Searches(client) as searches:
            begun = home.ok("models", "use", E5).out
            assert begun.startswith(f"{MINILM} -> {E5}: "), begun
            while (home.data / "reembed.json").exists():
                time.sleep(0.05)
            assert "->" not in home.ok("models", "list").out
            while_changing = len(searches.answers)
        rows = live(client, "vectorEmbeddings")
    assert len(rows) == len(NOTES) and len(old) == 1
    assert {(row["model"], row["dims"]) for row in rows.values()} == {(model, 384)} != {(*old, 384)}
    assert while_changing >= 5
    for answer in searches.answers:
        assert answer.status_code == 200, answer.text
        found = answer.json()
        assert found["scope"]["mode"] == "hybrid" and found["scope"]["pending"] == 0, found["scope"]
        assert found["results"][0]["filename"] == "boiler.txt"
    check_against_reference(home, rows.values())


def check_against_reference(home, rows):
    """Compare some of the new vectors with those of a float64 implementation of the model."""
    embedder = Embedder(Path(home.settings["models"], E5), workers=1)
    embedder.close()
    weights = random_e5.weights()
    for row in list(rows)[:2]:
        text, vector = row["chunks"][-1]["text"], vector_codec.decode(row["embedding"], row["dims"])[-1]
        expected = numpy_bert.forward(random_e5.SHAPE, weights, embedder.token_ids(f"passage: {text}"))
        assert float(vector @ expected) >= 0.9999


def test_models_pull_rejects_file_with_wrong_hash(home, published, monkeypatch):
    """The command has the real hashes, but the hub in the test serves random weights."""
    real = msgspec.structs.replace(published[0], weights=pinned_models.E5_SMALL.weights)
    done = pull_by_command(home, (real, published[1]), monkeypatch)
    assert done.exit_code == 1 and done.stdout == ""
    assert "model.safetensors" in done.stderr and "is not the published file" in done.stderr
    assert "It was removed and nothing was installed." in done.stderr and "Traceback" not in done.stderr
    installed = [row["id"] for row in home.ok("models", "list", "--json").json if row["installed"]]
    assert installed == [MINILM]
