"""`vademecum models add --as`, `fit` and `use`: an added model of any origin is fitted before it is used."""

import json

import pytest

from cli.command_runner import Home
from unit.engines.onnx.numpy_bert import write_source
from vademecum.cli.models import print_fitted
from vademecum.engines.onnx.pinned_models import E5_SMALL, PINNED_MODELS


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    folder = tmp_path_factory.mktemp("home")
    write_source(folder / "source")
    (folder / "models").mkdir()
    there = Home(folder / "data", {"models": str(folder / "models")})
    there.add("ada@example.org")
    return there


def manifest_file(home):
    return home.data.with_name("models") / "mine" / "manifest.json"


def test_added_model_is_fitted_listed_and_used(home):
    source = home.data.with_name("source")
    assert "--as needs --source" in home.run("models", "add", source, "--as", "mine").err
    assert home.run("models", "add", source).refusal().endswith("Another model needs --as and --source.")
    added = home.ok(
        "models", "add", source, "--as", "mine", "--source", "a USB stick", "--query-prefix", "query: "
    )
    assert "so words alone rank them; nDCG@10 0.534, words alone 0.534" in added.out
    assert "only exact repetitions of memories are merged" in added.out
    assert added.out.endswith(f"mine is installed in {manifest_file(home).parent}.\n")

    rows = {row["id"]: row for row in home.ok("models", "list", "--json").json}
    assert list(rows) == [*PINNED_MODELS, "mine"]
    stored = json.loads(manifest_file(home).read_text())
    assert (stored["source"], stored["prefixes"]["query"]) == ("a USB stick", "query: ")
    assert rows["mine"]["fitted"] == stored["thresholds"] and rows["mine"]["installed"]
    assert rows["e5-small-v2"]["fitted"]["sameFound"] == 0.609 and not rows["e5-small-v2"]["installed"]
    assert home.ok("models", "verify").out == "mine: complete\n"
    assert home.ok("models", "use", "mine").out == "mine is in use.\n"
    assert home.ok("models", "list").out.splitlines()[-1].split() == ["mine", "unknown", "in", "use"]


def test_model_without_fitted_values_is_not_used(home):
    stored = json.loads(manifest_file(home).read_text())
    manifest_file(home).write_text(json.dumps(stored | {"thresholds": None}))
    (home.data / "model").unlink()
    refused = home.run("models", "use", "mine").refusal()
    assert (
        refused == "mine has no fitted search weights. Run `vademecum models fit mine`. Nothing was changed."
    )
    assert home.ok("models", "fit", "mine", "--json").json == stored["thresholds"]
    assert json.loads(manifest_file(home).read_text()) == stored
    assert home.ok("models", "use", "mine").out == "mine is in use.\n"


def test_name_of_no_model_is_refused(home):
    for command in ("use", "fit"):
        assert home.run("models", command, "theirs").refusal().startswith("There is no model 'theirs'.")
        assert "is not installed" in home.run("models", command, "e5-small-v2").refusal()


def test_fitted_values_are_printed_with_their_figures(capsys):
    print_fitted(E5_SMALL.fitted)
    assert capsys.readouterr().out.splitlines() == [
        "Weight of meaning for passages of documents: 1.25 (1 for words); nDCG@10 0.775, words alone 0.534",
        "Weight of meaning for turns of conversations: 1 (1 for words); nDCG@10 0.79, words alone 0.551",
        "Minimum cosine of repeated memories: 0.95; reached by 61% of English paraphrases and 31% of English pairs of "
        "another meaning, which other rules refuse",
        "Languages in which meaning finds more than words: en",
        "nDCG@10 by meaning/words: en 0.858/0.702, de 0.703/0.69, es 0.546/0.664, fr 0.704/0.747, zh 0.52/0.787",
        "Fitted on fit data 1: 713 pairs, 905 rows, 394 questions",
    ]
