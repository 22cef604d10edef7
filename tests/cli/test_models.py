"""`vademecum models use, pause, resume, list, verify`, with and without a running server."""

import re
import shutil
import string
import time
from random import Random

import msgspec
import pytest

from cli.command_runner import Home
from unit.engines.onnx.numpy_bert import write_source
from vademecum.engines.onnx import download, pinned_models

SMALL, SLOW = pinned_models.ALL_MINILM.id, pinned_models.E5_SMALL.id
SHAPES = {SMALL: {}, SLOW: {"hidden_size": 192, "num_hidden_layers": 12, "intermediate_size": 768}}


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """Install two models under supported names: a fast one, and one whose model change is slow enough to interrupt."""
    folder = tmp_path_factory.mktemp("models")
    for name, shape in SHAPES.items():
        source, real = tmp_path_factory.mktemp(name), pinned_models.find_model(name)
        made = write_source(source, name, **shape)
        named = msgspec.structs.replace(made, revision=real.revision, prefixes=real.prefixes)
        download.prepare_from_folder(named, source, folder)
    return folder


@pytest.fixture(scope="module", params=["running", "alone"])
def home(request, tmp_path_factory, installed):
    """Return a data folder that all tests of this file share. All tests but the last leave the small model in use."""
    folder = tmp_path_factory.mktemp("home")
    models = folder / "models"
    shutil.copytree(installed, models)
    there = Home(folder / "data", {"models": str(models)})
    there.data.mkdir()
    (there.data / "model").write_text(SMALL)
    if request.param == "alone":
        fill(there)
        yield there
        return
    with there.serve():
        fill(there)
        yield there


def fill(home):
    """Add an account with enough text to make a model change slow."""
    home.add("ada@example.org")
    rng = Random(1)
    sentences = (" ".join(rng.choices(string.ascii_lowercase, k=12)) for _ in range(5_000))
    note = home.data.with_name("long.txt")
    note.write_text(". ".join(sentences))
    home.ok("import", note, "--user", "ada@example.org", "--session", "s1")


def state(home):
    """Return two values: a map from the two models to their states in `models list`, and the line about a model change."""
    *lines, last = home.ok("models", "list").out.splitlines()
    change = [last] if "->" in last else []
    rows = lines if change else [*lines, last]
    states = {row.split()[0]: row.split(maxsplit=2)[2].strip() for row in rows}
    return {name: states[name] for name in SHAPES}, "".join(change)


def test_models_use_with_previous_model_undoes_a_model_change(home):
    home.ok("models", "use", SLOW)
    home.ok("models", "pause")
    assert home.ok("models", "use", SMALL).out == f"{SMALL} is in use.\n"
    assert state(home) == ({SMALL: "in use", SLOW: "installed"}, "")


def test_models_verify_finds_a_flipped_byte(home):
    graph = home.data.with_name("models") / SLOW / "model.onnx"
    data = bytearray(graph.read_bytes())
    data[len(data) // 2] ^= 1
    graph.write_bytes(data)
    checked = home.run("models", "verify")
    assert (checked.code, checked.out) == (1, f"{SMALL}: complete\n")
    assert checked.err.startswith(f"{SLOW}: ") and f"`vademecum models pull {SLOW}`" in checked.err
    assert "Nothing was changed." in home.run("models", "use", SLOW).refusal()
    assert state(home)[0][SMALL] == "in use"
    data[len(data) // 2] ^= 1
    graph.write_bytes(data)
    assert home.ok("models", "verify").out == f"{SLOW}: complete\n{SMALL}: complete\n"


def test_models_use_rejects_a_missing_model(home):
    folder = home.data.with_name("models") / SLOW
    elsewhere = folder.rename(home.data.with_name(SLOW))
    message = home.run("models", "use", SLOW).refusal()
    assert message.startswith(f"{SLOW} is not installed.") and message.endswith("Nothing was changed.")
    assert state(home)[0] == {SMALL: "in use", SLOW: "-"}
    elsewhere.rename(folder)


def test_model_change_is_paused_and_resumed(home):
    assert state(home) == ({SMALL: "in use", SLOW: "installed"}, "")
    begun = home.ok("models", "use", SLOW).out
    assert re.fullmatch(rf"{SMALL} -> {SLOW}: \d+ of \d+ blocks, 0 of 1 accounts\n", begun), begun
    paused = home.ok("models", "pause").out
    assert paused.endswith("0 of 1 accounts, paused; `vademecum models resume` continues\n"), paused
    words, change = state(home)
    assert words == {SMALL: "being replaced", SLOW: "in use"} and "paused" in change
    rows = {row["id"]: row for row in home.ok("models", "list", "--json").json}
    assert rows[SMALL]["beingReplaced"] and rows[SLOW]["inUse"]
    assert "paused" not in home.ok("models", "resume").out
    if home.running is None:  # start a server, because a model change makes no progress without one
        assert "0 of 1 accounts" in state(home)[1]
        with home.serve():
            wait_for_the_end(home)
    else:
        wait_for_the_end(home)
    assert state(home) == ({SMALL: "installed", SLOW: "in use"}, "")
    for verb in ("pause", "resume"):
        assert home.run("models", verb).refusal() == "No model change is in progress."


def wait_for_the_end(home):
    end = time.monotonic() + 120
    while (home.data / "reembed.json").exists():
        assert time.monotonic() < end, home.running.output()
        time.sleep(0.05)
