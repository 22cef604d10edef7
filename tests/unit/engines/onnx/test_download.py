"""A model is installed completely or not at all, from a folder or from a hub that fails or sends wrong data."""

from __future__ import annotations

import json
import os
import shutil
import socket
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from unit.engines.onnx.local_hub import Hub
from vademecum.cli import install_model
from vademecum.engines.onnx import atomic_install, download, pinned_models
from vademecum.engines.onnx import manifest as manifests
from vademecum.engines.onnx.bert_graph import build_float32_graph, read_config, read_weights
from vademecum.engines.onnx.errors import ModelError
from vademecum.engines.onnx.pinned_models import PinnedModel


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "HF_ENDPOINT", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


def pull(tiny: tuple[PinnedModel, Path], models: Path, hub: Hub, **options: Any) -> Path:
    return download.pull(tiny[0], models, hub=hub.url, pause=lambda _: None, **options)


def left(models: Path) -> set[str]:
    return (
        {path.name for path in models.iterdir() if not path.name.endswith(".lock")}
        if models.exists()
        else set()
    )


def test_model_is_installed_from_a_folder(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    folder = download.prepare_from_folder(
        *tiny, tmp_path / "models", lambda done, total: seen.append((done, total))
    )
    assert {path.name for path in folder.iterdir()} == {"model.onnx", "tokenizer.json", "manifest.json"}
    manifest = manifests.verify(folder)
    assert (manifest.id, manifest.dims, manifest.layers, manifest.max_tokens) == ("tiny-e5", 32, 3, 48)
    assert manifest.prefixes.query == "query: "
    assert seen[-1][0] == seen[-1][1]
    assert left(tmp_path / "models") == {"tiny-e5"}
    tokenizer = json.loads((folder / "tokenizer.json").read_text())
    assert tokenizer["padding"] is None is tokenizer["truncation"]


def test_tokenizer_of_word_pieces_loses_the_published_normalizer() -> None:
    """The rules of `Precompiled` differ between the libraries of Python and the browser."""
    published = {
        "truncation": {"max_length": 512},
        "padding": None,
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Precompiled"}]},
        "pre_tokenizer": {"type": "Metaspace", "replacement": "_", "add_prefix_space": False},
        "model": {"type": "Unigram", "vocab": [["<unk>", 0]]},
    }
    tokenizer = json.loads(download.make_portable(json.dumps(published).encode()))
    assert tokenizer["truncation"] is None is tokenizer["normalizer"]
    steps = tokenizer["pre_tokenizer"]["pretokenizers"]
    assert [(step["type"], step.get("replacement")) for step in steps] == [
        ("WhitespaceSplit", None),
        ("Metaspace", "\u2581"),
    ]
    assert tokenizer["model"] == published["model"]


def test_install_is_idempotent_and_reproducible(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    first = download.prepare_from_folder(*tiny, tmp_path / "a")
    before = (first / "model.onnx").stat().st_mtime_ns
    download.prepare_from_folder(*tiny, tmp_path / "a")
    assert (first / "model.onnx").stat().st_mtime_ns == before
    assert (
        manifests.load(download.prepare_from_folder(*tiny, tmp_path / "b")).hash == manifests.load(first).hash
    )


def made_older(folder: Path, source: Path) -> None:
    """Change an installed model to the form that an older version installed, with weights in float32."""
    weights = read_weights(source / "model.safetensors")
    (folder / "model.onnx").write_bytes(
        build_float32_graph(read_config(source / "config.json"), weights).SerializeToString(
            deterministic=True
        )
    )
    files = tuple(manifests.describe(folder / file.path) for file in manifests.load(folder).files)
    changes: dict[str, Any] = {"precision": "float32", "files": files}
    manifests.save(msgspec.structs.replace(manifests.load(folder), **changes), folder)


def test_float32_model_is_upgraded_without_a_download(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    folder = download.prepare_from_folder(*tiny, tmp_path)
    today = manifests.load(folder)
    for again in (
        download.upgrade_precision,
        lambda known, models: download.prepare_from_folder(known, tiny[1], models),
    ):
        made_older(folder, tiny[1])
        older = manifests.verify(folder)
        assert older.hash != today.hash, "slightly different vectors need another hash"
        assert again(tiny[0], tmp_path)
        assert manifests.verify(folder) == today
        assert left(tmp_path) == {"tiny-e5"}
    assert not download.upgrade_precision(tiny[0], tmp_path), "a model must be upgraded only once"


def test_damaged_float32_model_is_not_upgraded(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    folder = download.prepare_from_folder(*tiny, tmp_path)
    made_older(folder, tiny[1])
    data = bytearray((folder / "model.onnx").read_bytes())
    data[len(data) // 2] ^= 1
    (folder / "model.onnx").write_bytes(data)
    assert not download.upgrade_precision(tiny[0], tmp_path)
    assert (folder / "model.onnx").read_bytes() == data


def test_install_command_upgrades_and_reports_float32_model(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinned_models, "PINNED_MODELS", {tiny[0].id: tiny[0]})
    made_older(download.prepare_from_folder(*tiny, tmp_path), tiny[1])
    first, second = (CliRunner().invoke(install_model.main, ["--models", str(tmp_path)]) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0), first.output
    assert "tiny-e5 was converted to half its size" in first.output
    assert second.output == ""
    assert manifests.verify(tmp_path / "tiny-e5").precision == "float16"


def test_damaged_model_is_replaced(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    folder = download.prepare_from_folder(*tiny, tmp_path)
    (folder / "model.onnx").write_bytes(b"torn")
    assert not download.is_installed(tiny[0], tmp_path)
    download.prepare_from_folder(*tiny, tmp_path)
    assert download.is_installed(tiny[0], tmp_path)
    assert left(tmp_path) == {"tiny-e5"}


def test_stale_folder_of_killed_process_is_deleted(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    for name, age in (("old", 2 * atomic_install.STALE_S), ("new", 0)):
        folder = tmp_path / f".tiny-e5.new-{name}"
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)
    download.prepare_from_folder(*tiny, tmp_path)
    assert left(tmp_path) == {"tiny-e5", ".tiny-e5.new-new"}


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_folder_with_altered_or_missing_model_file_is_refused(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, name: str
) -> None:
    source = Path(shutil.copytree(tiny[1], tmp_path / "source"))
    data = bytearray((source / name).read_bytes())
    data[-2] ^= 1
    (source / name).write_bytes(data)
    with pytest.raises(ModelError, match="not the published file") as error:
        download.prepare_from_folder(tiny[0], source, tmp_path / "models")
    assert error.value.code == "MODEL_CHECKSUM"
    (source / name).unlink()
    with pytest.raises(ModelError, match="cannot be read"):
        download.prepare_from_folder(tiny[0], source, tmp_path / "models")
    assert left(tmp_path / "models") == set()


def test_model_is_downloaded_from_the_hub(tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub) -> None:
    seen: list[tuple[int, int]] = []
    folder = pull(tiny, tmp_path / "models", hub, progress=lambda done, total: seen.append((done, total)))
    elsewhere = download.prepare_from_folder(*tiny, tmp_path / "elsewhere")
    assert manifests.verify(folder).hash == manifests.load(elsewhere).hash, (
        "the model differs from one that was installed from a folder"
    )
    assert seen == sorted(seen)
    assert seen[-1][0] == seen[-1][1] == sum(file.bytes for file in tiny[0].files)
    assert left(tmp_path / "models") == {"tiny-e5"}
    hub.log.clear()
    pull(tiny, tmp_path / "models", hub)
    assert hub.log == [], "an installed model was fetched again"


def test_hf_endpoint_variable_selects_the_hub(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", hub.url + "/")
    download.pull(tiny[0], tmp_path)
    assert download.is_installed(tiny[0], tmp_path)


def test_stalled_download_is_resumed(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "READ_S", 0.5)
    hub.drop_after, hub.drops = 1000, 1
    hub.silence.clear()  # the hub stays silent until this event is set
    pull(tiny, tmp_path, hub)
    assert download.is_installed(tiny[0], tmp_path)
    assert any(wanted for _, wanted in hub.log), "the received part was not kept"


def test_interrupted_download_is_resumed_by_next_run(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    class Stop(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done > total // 2:
            raise Stop

    with pytest.raises(Stop):
        pull(tiny, tmp_path, hub, progress=stop)
    assert not download.is_installed(tiny[0], tmp_path)
    hub.log.clear()
    pull(tiny, tmp_path, hub)
    assert download.is_installed(tiny[0], tmp_path)
    assert [name for name, _ in hub.log] == ["model.safetensors"]
    assert hub.log[0][1], "the download did not resume at the received part"


def test_download_restarts_if_hub_ignores_ranges(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    hub.ranges, hub.drop_after, hub.drops = False, 30_000, 2
    pull(tiny, tmp_path, hub)
    assert download.is_installed(tiny[0], tmp_path)
    asked = [wanted for name, wanted in hub.log if name == "model.safetensors"]
    assert asked == [None, "bytes=30000-", "bytes=30000-"], (
        "a response from the start must not be appended to the received part"
    )


def test_response_with_wrong_range_is_not_appended(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    hub.wrong_range, hub.drop_after, hub.drops = True, 30_000, 1
    pull(tiny, tmp_path, hub)
    assert download.is_installed(tiny[0], tmp_path)


def test_complete_partial_download_is_reused(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    parts = tmp_path / ".tiny-e5.download"
    parts.mkdir()
    shutil.copy(tiny[1] / "model.safetensors", parts / "model.safetensors.part")
    pull(tiny, tmp_path, hub)
    assert download.is_installed(tiny[0], tmp_path)


def test_busy_hub_is_retried(tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub) -> None:
    hub.statuses = [503, 429]
    pull(tiny, tmp_path, hub)
    assert download.is_installed(tiny[0], tmp_path)


def test_download_fails_after_last_attempt_and_keeps_parts(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub
) -> None:
    hub.statuses = [500] * 50
    with pytest.raises(ModelError, match="run the same command again") as error:
        pull(tiny, tmp_path, hub)
    assert error.value.code == "MODEL_HUB"
    assert len(hub.statuses) == 50 - download.ATTEMPTS
    assert left(tmp_path) == {".tiny-e5.download"}


def test_file_with_wrong_hash_is_deleted(tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub) -> None:
    good = hub.files["model.safetensors"]
    hub.files["model.safetensors"] = good[:-4] + b"evil"
    with pytest.raises(ModelError, match="not the published file") as error:
        pull(tiny, tmp_path, hub)
    assert error.value.code == "MODEL_CHECKSUM"
    assert not list(tmp_path.rglob("model.safetensors*"))
    hub.files["model.safetensors"] = good + bytes(4 * download.SLACK)
    with pytest.raises(ModelError, match="not the published file"):
        pull(tiny, tmp_path, hub)
    hub.files["model.safetensors"] = good
    pull(tiny, tmp_path, hub)


def test_missing_revision_is_reported(tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub) -> None:
    other = msgspec.structs.replace(tiny[0], revision="feedbeef")
    hub.prefix = "/nothing/"
    hub.files.clear()
    hub.statuses = [404]
    with pytest.raises(ModelError, match=r"does not have config\.json") as error:
        download.pull(other, tmp_path, hub=hub.url)
    assert error.value.code == "MODEL_HUB"


def test_offline_variable_prevents_the_download(
    tiny: tuple[PinnedModel, Path], tmp_path: Path, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(ModelError, match="HF_HUB_OFFLINE") as error:
        pull(tiny, tmp_path, hub)
    assert error.value.code == "MODEL_OFFLINE"
    assert hub.log == []


def test_unreachable_hub_is_tried_once(tiny: tuple[PinnedModel, Path], tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        pauses: list[float] = []
        with pytest.raises(ModelError, match="could not be fetched") as error:
            download.pull(
                tiny[0], tmp_path, hub=f"http://127.0.0.1:{taken.getsockname()[1]}", pause=pauses.append
            )
    assert error.value.code == "MODEL_HUB"
    assert pauses == []


def test_pinned_models_have_hashes_and_revisions() -> None:
    assert pinned_models.find_model("e5-small-v2").prefixes.passage == "passage: "
    for model in pinned_models.PINNED_MODELS.values():
        assert all(len(file.sha256) == 64 for file in model.files)
        assert len(model.revision) == 40
    e5 = pinned_models.E5_SMALL.weights.sha256
    assert (e5[:8], e5[-4:]) == ("45bfa600", "16c1")
    with pytest.raises(ModelError, match="Known: e5-small-v2"):
        pinned_models.find_model("word2vec")


def test_offline_package_equals_the_published_model(minilm_source: Path) -> None:
    for file in pinned_models.ALL_MINILM.files:
        assert manifests.sha256(minilm_source / file.path) == file.sha256
        assert (minilm_source / file.path).stat().st_size == file.bytes
