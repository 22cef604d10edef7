"""Only `serve` and `user add` create a data folder. Also tests the printed advice on installing a model."""

import os
import re
import shlex
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp

import pytest

from cli.command_runner import Home
from vademecum.cli.import_ import find_files
from vademecum.engines.onnx import download

OTHERS = [
    "user list", "user tier a@b.org FREE", "user admin a@b.org", "user link a@b.org", "user remove a@b.org --yes", "token create a@b.org",
    "token list a@b.org", "token revoke a@b.org 1", "import {0} --user a@b.org --session s",
    "search x --user a@b.org --session s", "forget --user a@b.org --yes", "erase", "epoch --all", "backup {0}/copy", "models list",
    "models use e5-small-v2", "models pause", "models resume", "models verify",
]  # fmt: skip


@pytest.mark.parametrize("words", OTHERS)
def test_commands_do_not_create_missing_data_folder(tmp_path, words):
    home = Home(tmp_path / "nosuch")
    message = home.run(*words.format(tmp_path).split()).refusal()
    assert message.startswith(f"There is no data folder {home.data}.")
    assert not home.data.exists()


def test_doctor_creates_no_data_folder(tmp_path):
    home = Home(tmp_path / "nosuch")
    done = home.run("doctor")
    assert done.code == 1 and f"{home.data} does not exist" in done.out and not home.data.exists()


def test_folder_with_unrelated_files_is_not_used_as_data_folder(tmp_path):
    home = Home(tmp_path / "photos")
    home.data.mkdir()
    (home.data / "photo.jpg").write_bytes(b"")
    assert home.run("user", "list").refusal().startswith(f"There is no data folder {home.data}.")
    assert [one.name for one in home.data.iterdir()] == ["photo.jpg"]


def test_commands_do_not_recreate_missing_accounts_file(tmp_path):
    home = Home(tmp_path / "data")
    home.add_with_document("ada@example.org")
    (home.data / "accounts.duckdb").unlink()
    for command in (["user", "list"], ["user", "add", "bob@example.org", "--tier", "FREE"]):
        assert "accounts.duckdb is missing" in home.run(*command).refusal()
    assert "accounts.duckdb is missing" in home.run("serve", "--port", 0).err.splitlines()[-1]
    assert "accounts.duckdb is missing" in home.run("doctor").out
    assert not (home.data / "accounts.duckdb").exists()


def test_commands_in_printed_advice_install_an_offline_model(tmp_path):
    assert download.find_offline_weights() is not None, (
        "the test environment lacks the package with the offline model"
    )
    home = Home(tmp_path / "a folder", {"models": str(tmp_path / "a folder" / "models")})
    with home.serve() as server:
        server.end()
        output = server.output()
    advice = re.search(r"`VADEMECUM_MODELS=.+ vademecum (models pull --data [^`]+)`", output)
    assert advice, output
    assert advice[1] in home.run("doctor").out
    *words, flag, data = shlex.split(advice[1])
    assert (flag, data) == ("--data", str(home.data))
    done = home.ok(*words)
    assert "all-minilm-l6-v2 is installed" in done.out and "HF_HUB_OFFLINE" in done.err
    assert "in use" in home.ok("models", "list").out


def test_import_skips_folder_that_cannot_be_entered():
    top = Path(mkdtemp(prefix="vademecum-"))  # not tmp_path, which other users may not enter
    top.chmod(0o755)
    shut = top / "shut"
    shut.mkdir()
    for file in (shut / "in.txt", top / "beside.txt"):
        file.write_text("The ferry leaves at noon.")
    shut.chmod(0o744)
    with ProcessPoolExecutor(1, mp_context=get_context("fork"), initializer=become_nobody) as nobody:
        found = nobody.submit(list_of_found, top).result()
    rmtree(top)
    assert found == [("beside.txt", ""), ("shut", "folder that cannot be read")]


def become_nobody() -> None:
    if os.geteuid() == 0:  # root could enter the folder that the test must not enter
        os.setuid(65534)


def list_of_found(top: Path) -> list[tuple[str, str]]:
    return sorted((one.path.name, one.skipped) for one in find_files([top]))
