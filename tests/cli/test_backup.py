"""The commands `backup`, `restore` and `doctor`: verified copies, new epochs, erased rows and damaged files."""

import hashlib
import shutil
from contextlib import nullcontext

import duckdb
import pytest

from cli.command_runner import MODELS, Home, live, rows, upload
from property.rows import sync_path

T = "2026-01-01T00:00:00.000Z"
PATH = "/v1/sync/documents/1/pull"


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """Create a data folder with one document of Ada, once for all tests. Return the folder and her account's id."""
    there = Home(tmp_path_factory.mktemp("begun") / "data")
    return there.data, there.add_with_document("ada@example.org")


@pytest.fixture
def ada(home, begun):
    """Copy the folder of `begun` to `home`, and return the id of Ada's account."""
    folder, account = begun
    shutil.copytree(folder, home.data)
    return account


def checkpoint(client, collection="documents"):
    return client.get(f"{sync_path(collection)}/pull?lwt=0&id=&limit=1000").json()["checkpoint"]


def fact(row_id, value="Ada Lovelace"):
    return {"id": row_id, "createdAt": T, "updatedAt": T, "_deleted": False, "key": "user.name", "value": value,
            "sourceRemoved": False, "confidence": 1, "confirmed": True}  # fmt: skip


def push(client, collection, row):
    answer = client.post(f"{sync_path(collection)}/push", json=[{"newDocumentState": row}])
    assert answer.status_code == 200, answer.text
    return answer.json()


def digest(folder):
    """Map the path of each file below the folder to its hash."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def holds(folder, text):
    return any(text.encode() in p.read_bytes() for p in folder.rglob("*") if p.is_file())


def test_restore_begins_new_epoch_and_keeps_erased_rows_erased(home, tmp_path):
    copy = tmp_path / "copy"
    with home.serve("--erase-delay-s", "0.05") as server:
        for name in ("ada", "bob"):
            home.add(f"{name}@example.org")
        ada, bob = (server.client(home.token(f"{n}@example.org")) for n in ("ada", "bob"))
        with ada, bob:
            kept = upload(ada, "kept.txt", "The orchard has forty apple trees.")
            erased = upload(ada, "erased.txt", "The cellar has forty barrels of cider.")
            upload(bob, "bob.txt", "The stable has four horses.")
            made = home.ok("backup", copy, "--json").json
            assert len(made["users"]) == 3 and len(made["files"]) >= 3
            before = digest(copy)
            assert {k: v for k, v in before.items() if k != "backup.json"} == made["files"]
            # Make changes after the backup, which the restore must undo or keep.
            assert ada.delete(f"/v1/documents/{erased['id']}").status_code == 200
            later = upload(ada, "later.txt", "The barn was built last year.")
            assert bob.post("/v1/forget", json={"confirm": "forget everything"}).status_code == 200
            old, last = (
                checkpoint(ada),
                max(checkpoint(ada, c)["lwt"] for c in ("documents", "vectorEmbeddings")),
            )

            done = home.ok("restore", copy, "--yes", "--json").json
            assert done["backupAt"] == made["at"] and done["erasedAgain"] >= 2
            assert digest(copy) == before, "a restore must not change the backup"

            refused = ada.get(PATH, params={"lwt": old["lwt"], "id": old["id"]})
            assert refused.status_code == 409 and refused.json()["code"] == "EPOCH"
            pushed = ada.post("/v1/sync/facts/0/push", params={"epoch": old["id"]}, json=[])
            assert pushed.status_code == 409 and pushed.json()["code"] == "EPOCH"
            new = checkpoint(ada)
            assert new["id"] != old["id"]
            assert live(ada, "documents").keys() == {kept["id"]}
            stones = {row["id"]: row for row in rows(ada, "documents") if row["_deleted"]}
            assert stones.keys() == {erased["id"]} and stones[erased["id"]]["filename"] == ""
            assert push(ada, "facts", fact("after")) == []
            assert checkpoint(ada, "facts")["lwt"] > last, "a seq must not be reused"
            # A device cannot bring back the erased document, but it can push the document created after the backup.
            stale = {k: v for k, v in erased.items() if k != "syncError"}
            assert push(ada, "documents", stale)[0]["_deleted"] is True
            assert push(ada, "documents", later) == []
            assert later["id"] in live(ada, "documents")

            assert live(bob, "documents") == {} and live(bob, "vectorEmbeddings") == {}
            assert push(bob, "facts", fact("old"))[0]["syncError"]["code"] == "FORGOTTEN"
            found = ada.post("/v1/search", json={"query": "apple trees", "sessionId": "s1"}).json()
            assert [one["documentId"] for one in found["results"]][:1] == [kept["id"]]
            hidden = ada.post("/v1/search", json={"query": "barrels cider", "sessionId": "s1"}).json()
            assert erased["id"] not in [one["documentId"] for one in hidden["results"]]


def test_backup_can_be_restored_to_new_folder_without_server(home, tmp_path):
    home.add("ada@example.org")
    token = home.token("ada@example.org")
    (tmp_path / "apples.txt").write_text("The orchard has forty apple trees.")
    home.ok("import", tmp_path / "apples.txt", "--user", "ada@example.org", "--session", "s1")
    home.ok("backup", tmp_path / "copy")
    other = Home(tmp_path / "new" / "data")
    restored = other.ok("restore", tmp_path / "copy", "--yes", "--json").json
    assert (restored["users"], restored["accounts"]) == (1, 1)
    with other.serve() as server, server.client(token) as ada:
        assert [d["filename"] for d in live(ada, "documents").values()] == ["apples.txt"]
        found = ada.post("/v1/search", json={"query": "apple trees", "sessionId": "s1"}).json()
        assert found["results"]


def test_new_server_restores_owner_from_backup(home, tmp_path):
    """The first start of the new server has already created an owner with the same email."""
    text = "The orchard has forty apple trees."
    with home.serve() as server, server.client(home.token("owner@localhost")) as owner:
        upload(owner, "apples.txt", text)
        home.ok("backup", tmp_path / "copy")
    other = Home(tmp_path / "new" / "data")
    with other.serve() as server:
        restored = other.run("restore", tmp_path / "copy", "--yes", "--json")
        if restored.code == 0:
            with server.client(other.token("owner@localhost")) as owner:
                names = [d["filename"] for d in live(owner, "documents").values()]
            assert names == ["apples.txt"], f"the restore reported success: {restored.out}"
        else:
            assert "owner@localhost" in restored.refusal()


def test_removed_account_is_not_restored(home, tmp_path):
    leaver = home.add("leaver@example.org")
    home.ok("backup", tmp_path / "copy")
    home.ok("user", "remove", "leaver@example.org", "--yes")
    home.add("newcomer@example.org")
    assert home.ok("restore", tmp_path / "copy", "--yes", "--json").json["accounts"] == 0
    assert [one["email"] for one in home.ok("user", "list", "--json").json] == ["newcomer@example.org"]
    assert not list(home.data.glob(f"users/*/{leaver}"))


def test_restore_names_removed_accounts(home, ada, tmp_path):
    bob = home.add("bob@example.org")
    home.ok("backup", tmp_path / "copy")
    for email in ("ada@example.org", "bob@example.org"):
        home.ok("user", "remove", email, "--yes")
    home.add("Ada@Example.org")
    restored = home.ok("restore", tmp_path / "copy", "--yes")
    assert restored.out.startswith("Restored the records of 0 accounts as of ")
    again, nameless = restored.err.splitlines()
    assert again.startswith("Ada@Example.org was not restored: that account was removed permanently")
    assert nameless.startswith("Not restored, because they were removed permanently") and nameless.endswith(
        f": {bob}."
    )
    result = home.ok("restore", tmp_path / "copy", "--yes", "--json").json
    assert {one["id"]: one["email"] for one in result["removed"]} == {ada: "Ada@Example.org", bob: None}
    assert result["skipped"] == []


def test_restore_rejects_a_damaged_backup(home, ada, tmp_path):
    copy = tmp_path / "copy"
    home.ok("backup", copy)
    before = home.ok("user", "list").out
    records = next(home.data.glob("users/*/*/records.duckdb"))
    content = records.read_bytes()
    (tmp_path / "folder").mkdir()
    assert "not a backup" in home.run("restore", tmp_path / "folder", "--yes").refusal()
    assert "nowhere" in home.run("restore", tmp_path / "nowhere", "--yes").refusal()
    damaged = next(copy.glob("users/*/*/records.duckdb"))
    damaged.write_bytes(damaged.read_bytes()[:-1] + b"?")
    name = damaged.relative_to(copy)
    printed_text = home.run("restore", copy, "--yes").refusal()
    assert printed_text.startswith(f"The backup {copy} is damaged: {name} was changed. Nothing was changed.")
    damaged.unlink()
    assert f"is damaged: {name} is missing. Nothing" in home.run("restore", copy, "--yes").refusal()
    assert records.read_bytes() == content and home.ok("user", "list").out == before


def test_backup_rejects_an_existing_target(home, tmp_path):
    home.add("ada@example.org")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert "exists" in home.run("backup", tmp_path / "full").refusal()
    assert digest(tmp_path / "full").keys() == {"mine.txt"}
    assert sorted(p.name for p in tmp_path.iterdir() if p.name.startswith("full")) == ["full"]


def test_stray_files_in_backup_are_not_restored(home, ada, tmp_path):
    copy = tmp_path / "copy"
    home.ok("backup", copy)
    folder = next(copy.glob(f"users/*/{ada}"))
    for stray in (copy / ".DS_Store", copy / "users" / "Thumbs.db", folder / "._records.duckdb"):
        stray.write_text("stray")
    assert home.ok("restore", copy, "--yes", "--json").json["users"] == 1
    assert not holds(home.data, "stray")
    (folder / "records.duckdb.wal").write_text("stray")  # DuckDB would read this file as part of the records
    printed_text = home.run("restore", copy, "--yes").refusal()
    assert (
        f"{folder.relative_to(copy)}/records.duckdb.wal is not part of it. Nothing was changed."
        in printed_text
    )


@pytest.mark.parametrize("with_server", [True, False], ids=["with a server", "without one"])
def test_backup_reports_why_target_cannot_be_written(home, ada, tmp_path, with_server):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "loop").symlink_to("loop")
    nowhere = {
        "file/copy": "Not a directory",
        "file/deep/copy": "Not a directory",
        "x" * 300: "File name too long",
    }
    with home.serve() if with_server else nullcontext() as server:
        for name, why in {**nowhere, "loop/copy": "Too many levels of symbolic links"}.items():
            printed_text = home.run("backup", tmp_path / name).refusal()
            assert printed_text.startswith(
                f"{tmp_path / name} cannot be written ({why}). No backup was made"
            ), printed_text
        records = next(home.data.glob(f"users/*/{ada}/records.duckdb"))
        records.rename(tmp_path / "records")
        records.mkdir()
        assert (tmp_path / "file").read_text() == "mine" and not list(tmp_path.glob("*copy*"))
        done = home.run("backup", tmp_path / "copy")
        assert done.code == 1 and ", 0 with records: " in done.out, done
        assert f"Not backed up: ada@example.org. {records} cannot be read (Is a directory)." in done.err
        assert server is None or "defect" not in server.output()


def test_backup_contains_no_deleted_document(home, tmp_path):
    deleted_text, kept_text = (
        "The xylophone of Bartholomew is hidden beneath the oak.",
        "Forty apple trees stand here.",
    )
    with home.serve("--erase-delay-s", "60") as server:
        home.add("ada@example.org")
        with server.client(home.token("ada@example.org")) as ada:
            document = upload(ada, "xylophone.txt", deleted_text)
            upload(ada, "apples.txt", kept_text)
            home.ok("backup", tmp_path / "with")
            assert holds(tmp_path / "with", deleted_text), "control: the scan must find stored text"
            assert ada.delete(f"/v1/documents/{document['id']}").status_code == 200
            home.ok("backup", tmp_path / "without")
            assert holds(tmp_path / "without", kept_text)
            assert not holds(tmp_path / "without", deleted_text)


@pytest.mark.parametrize("with_server", [True, False], ids=["with a server", "without one"])
def test_restore_erases_rows_forgotten_since_backup(home, tmp_path, with_server):
    secret = "The lantern keeper counts the ships at midnight."
    home.settings["erase_delay_s"] = "600"
    (tmp_path / "keeper.txt").write_text(secret)
    with home.serve() if with_server else nullcontext():
        home.add("ada@example.org")
        home.ok("import", tmp_path / "keeper.txt", "--user", "ada@example.org", "--session", "s1")
        home.ok("backup", tmp_path / "copy")
        assert holds(tmp_path / "copy", secret), "control: the scan must find stored text"
        home.ok("forget", "--user", "ada@example.org", "--yes")
        assert home.ok("restore", tmp_path / "copy", "--yes", "--json").json["erasedAgain"] >= 2
        assert not holds(home.data, secret)


def test_missing_vector_index_is_rebuilt_by_the_next_search(home, ada):
    who = ("--user", "ada@example.org", "--session", "s1")
    assert home.ok("search", "apple trees", *who, "--json").json["results"]
    (vectors,) = home.data.glob("users/*/*/vectors")
    shutil.rmtree(vectors)
    assert home.ok("search", "apple trees", *who, "--json").json["results"]


def test_doctor_reports_no_problem_for_healthy_folder(home):
    home.settings["models"] = str(MODELS)
    assert home.run("doctor").code == 1, "doctor must fail without a data folder"
    assert not home.data.exists(), "doctor must not create the folder"
    home.data.mkdir(mode=0o700)
    begun = home.run("doctor")
    assert begun.code == 1 and "vademecum serve" in begun.out
    assert list(home.data.iterdir()) == [], "doctor must not create files in an empty folder"
    home.add("ada@example.org")
    looked = home.run("doctor", "--json")
    assert [one for one in looked.json if not one["ok"]] == [] and looked.code == 0
    checks = {one["check"]: one["detail"] for one in looked.json}
    assert checks["server"] == "not running" and "all-minilm-l6-v2" in checks["model"]
    with home.serve() as server:
        checks = {one["check"]: one["detail"] for one in home.ok("doctor", "--json").json}
        assert server.url in checks["server"]


@pytest.mark.parametrize("with_server", [True, False], ids=["with a server", "without one"])
def test_doctor_names_damaged_segment(home, ada, with_server):
    home.add("bob@example.org")
    (path,) = home.data.glob(f"users/*/{ada}/records.duckdb")
    with duckdb.connect(path) as connection:
        connection.execute("UPDATE packs SET bodies = replace(bodies, 'a', 'b')")
    with home.serve() if with_server else nullcontext():
        looked = home.run("doctor", "--json")
    (users,) = [one for one in looked.json if one["check"] == "users"]
    assert looked.code == 1 and not users["ok"]
    assert "ada@example.org" in users["detail"] and str(path) in users["detail"]
    assert "vademecum restore" in users["detail"] and "bob@example.org" not in users["detail"]


def test_doctor_reports_model_of_running_server(home):
    with home.serve("--models", str(MODELS)):
        checks = {one["check"]: one["detail"] for one in home.run("doctor", "--json").json}
        assert checks["model"] == "all-minilm-l6-v2, in use by the running server"


def test_backup_rejects_a_target_inside_the_data_folder(home):
    home.add("ada@example.org")
    for target in (home.data / "bk", home.data / "users" / ".." / "bk"):
        assert "inside the data folder" in home.run("backup", target).refusal()
    assert not (home.data / "bk").exists()


@pytest.mark.parametrize(
    "pattern, cure",
    [
        ("users/*/*/records.duckdb", "restore"),
        ("accounts.duckdb", "replace the file with the `accounts.duckdb` of a backup"),
    ],
)
def test_damaged_database_is_reported_with_remedy(home, ada, pattern, cure):
    (file,) = home.data.glob(pattern)
    content = b"this is not a database" * 1000
    file.write_bytes(content)
    looked = home.run("doctor", "--json")
    assert looked.code == 1
    (users,) = [one for one in looked.json if one["check"] == "users"]
    assert not users["ok"] and file.name in users["detail"] and cure in users["detail"]
    listed = home.run("user", "list")
    assert file.name in (listed.refusal() if pattern == "accounts.duckdb" else listed.out)
    assert file.read_bytes() == content, "doctor and list must not change the damaged file"


def test_restore_repairs_damaged_account(home, ada, tmp_path):
    """The error message about the damage names `vademecum restore` as the remedy."""
    home.ok("backup", tmp_path / "copy")
    next(home.data.glob(f"users/*/{ada}/records.duckdb")).write_bytes(b"this is not a database" * 1000)
    home.ok("restore", tmp_path / "copy", "--yes")
    listed = {one["email"]: one for one in home.ok("user", "list", "--json").json}
    assert listed["ada@example.org"]["usage"]["documents"] == 1


def test_restore_of_one_account_with_running_server(home, ada, tmp_path):
    home.add_with_document("bob@example.org")
    home.ok("backup", tmp_path / "copy")
    with home.serve():
        printed_text = home.ok("restore", tmp_path / "copy", "--user", "ada@example.org", "--yes").out
        assert printed_text.startswith("Restored the records of 1 account as of ")
        assert (
            "no account"
            in home.run("restore", tmp_path / "copy", "--user", "eve@example.org", "--yes").refusal()
        )


def test_damaged_accounts_file_is_reported_in_one_sentence(home, ada):
    accounts = home.data / "accounts.duckdb"
    whole = accounts.read_bytes()
    for size in (len(whole) // 4, len(whole) // 2, len(whole) * 3 // 4):
        accounts.write_bytes(whole[:size])
        printed_text = home.run("user", "list").refusal()
        assert "accounts.duckdb" in printed_text and "backup" in printed_text
    for place in range(9_000, len(whole), 16_384):
        accounts.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        done = home.run("user", "list")
        assert "Traceback" not in done.err and (done.code == 0 or "accounts.duckdb" in done.err), done


def test_damaged_account_does_not_block_other_accounts(home, ada):
    home.add("bob@example.org")
    next(home.data.glob(f"users/*/{ada}/records.duckdb")).write_bytes(b"this is not a database" * 1000)
    home.ok("user", "tier", "bob@example.org", "JIVE")
    home.ok("user", "remove", "ada@example.org", "--yes")
    assert [one["email"] for one in home.ok("user", "list", "--json").json] == ["bob@example.org"]


def test_damaged_accounts_file_can_be_replaced_from_backup(home, ada, tmp_path):
    """The error message names this remedy. The documents stay, because other files contain them."""
    home.ok("backup", tmp_path / "copy")
    home.add_with_document("bob@example.org")
    accounts = home.data / "accounts.duckdb"
    accounts.write_bytes(b"this is not a database" * 1000)
    refused = home.run("user", "list")
    assert refused.code == 1 and "replace the file with the `accounts.duckdb` of a backup" in refused.err
    shutil.copy(tmp_path / "copy" / "accounts.duckdb", accounts)
    listed = {one["email"]: one for one in home.ok("user", "list", "--json").json}
    assert listed["ada@example.org"]["usage"]["documents"] == 1 and "bob@example.org" not in listed


def test_backup_and_restore_both_count_accounts_with_records(home, ada, tmp_path):
    home.add("bob@example.org")
    made = home.ok("backup", tmp_path / "copy").out
    assert made.startswith("Backed up and verified 2 accounts, 1 with records: ")
    assert home.ok("restore", tmp_path / "copy", "--yes").out.startswith(
        "Restored the records of 1 account as of "
    )


def test_help_of_restore_mentions_removed_accounts(home):
    printed_text = " ".join(home.ok("restore", "--help").out.split())
    assert "Missing accounts are restored, unless they were removed." in printed_text
