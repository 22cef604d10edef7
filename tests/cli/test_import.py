"""`vademecum import` reports its progress and imports only the named files."""

import os
import subprocess
import threading
from pathlib import Path

import pytest

from cli.command_runner import COMMAND, MODELS, Home
from property.rows import document, session
from server.in_process_server import browser, run, serve
from vademecum.cli.api_client import ApiClient
from vademecum.cli.import_ import _progress, _wait_until_embedded, find_files

WHO = ("--user", "ada@example.org", "--session", "s1")


@pytest.fixture
def home(tmp_path):
    there = Home(tmp_path / "data")
    there.add("ada@example.org")
    return there


def left_out(*named: Path):
    return {one.path: one.skipped for one in find_files(named) if one.skipped}


def taken(*named: Path):
    return [one.path for one in find_files(named) if not one.skipped]


def test_import_reports_each_file_as_soon_as_it_is_done(home, tmp_path):
    """The last file is a pipe without a writer, so the import blocks there after it has reported the other files."""
    (tmp_path / "a.txt").write_text("The harbour bell rings at noon.")
    (tmp_path / "empty.txt").write_text("")
    pipe = tmp_path / "slow.txt"
    os.mkfifo(pipe)
    files = (tmp_path / "a.txt", tmp_path / "empty.txt", pipe)
    command = [*COMMAND, "import", *files, *WHO, "--data", home.data]
    with subprocess.Popen(
        command, env=home.environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        watchdog = threading.Timer(60, process.kill)  # ends readline() if a line is missing
        watchdog.start()
        assert process.stderr.readline() == f"{files[0]}: stored, 1 passage\n"
        assert process.stderr.readline().startswith(f"{files[1]}: This file contains no text.")
        assert process.poll() is None, "import ended before its last file"
        pipe.write_text("Beat four eggs with sugar.")
        assert process.stderr.readline() == f"{pipe}: stored, 1 passage\n"
        process.stderr.read()
        assert process.stdout.read() == "2 of 3 files imported.\n"
        watchdog.cancel()
    assert process.returncode == 1


def test_import_with_wait_reports_each_embedded_document(tmp_path):
    home = Home(tmp_path / "data", {"models": str(MODELS)})
    home.add("ada@example.org")
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("The harbour bell rings at noon.")
    b.write_text("Beat four eggs with sugar.")
    message = home.ok("import", a, b, *WHO).err.splitlines()
    assert message[:2] == [f"{file}: stored, 1 passage" for file in (a, b)]
    assert (
        "can now be found by words" in message[2] and "2 documents" in message[2] and "minutes" in message[2]
    )
    assert {line.partition(":")[0] for line in message[3:]} == {str(a), str(b)}
    assert [line.partition(": ")[2] for line in message[3:]] == ["ready, 1 of 2", "ready, 2 of 2"]
    again = home.ok("import", a, *WHO)
    assert again.err == f"{a}: already imported, 1 passage\n", (
        "import must not wait for a document that is ready"
    )


def test_help_of_import_explains_waiting(home):
    message = " ".join(home.ok("import", "--help").out.split())
    assert "waits" in message and "minutes" in message and "Use --no-wait to return earlier" in message


def test_import_names_and_counts_skipped_files(home, tmp_path):
    papers, outside = tmp_path / "papers", tmp_path / "outside.txt"
    (papers / ".hidden").mkdir(parents=True)
    (papers / ".hidden" / "secret.txt").write_text("nobody asked for this one")
    (papers / "a.txt").write_text("The harbour bell rings at noon.")
    outside.write_text("This was never named.")
    (papers / "link.txt").symlink_to(outside)
    done = home.ok("import", papers, *WHO)
    assert f"{papers / '.hidden'}: skipped (hidden)" in done.err
    assert f"{papers / 'link.txt'}: skipped (link that leads outside)" in done.err
    assert done.out == "1 of 1 files imported. Skipped: 1 hidden, 1 link that leads outside.\n"


def test_files_with_unusual_names_are_imported(home, tmp_path):
    papers = tmp_path / "papers"
    papers.mkdir()
    names = (b"caf\xe9.txt", b"red \x1b[31m.txt", b"two\nlines.txt", b"z.txt")
    for number, name in enumerate(names):
        Path(os.fsdecode(os.fsencode(papers) + b"/" + name)).write_text(f"This is note {number}.")
    done = home.ok("import", papers, *WHO, "--json", "--no-wait")
    assert [row["file"].rpartition("/")[2] for row in done.json] == [
        "caf\ufffd.txt",
        "red \x1b[31m.txt",
        "two\nlines.txt",
        "z.txt",
    ]
    assert all("documentId" in row for row in done.json)
    message = [line.rpartition("/")[2] for line in done.err.splitlines()]
    assert message == [
        f"{name}: stored, 1 passage"
        for name in ("caf\ufffd.txt", "red \ufffd[31m.txt", "two\ufffdlines.txt", "z.txt")
    ]


def test_import_rejects_huge_file_and_imports_the_other_files(home, tmp_path):
    papers = tmp_path / "papers"
    papers.mkdir()
    with (papers / "film.txt").open("wb") as film:
        film.truncate(2**40)  # a sparse file, which uses no disk space
    (papers / "note.txt").write_text("The harbour bell rings at noon.")
    done = home.run("import", papers, *WHO, "--no-wait")
    assert (done.code, done.out) == (1, "1 of 2 files imported.\n")
    assert done.err.splitlines() == [
        f"{papers / 'film.txt'}: The file is larger than 64 MB.",
        f"{papers / 'note.txt'}: stored, 1 passage",
    ]


def test_import_with_wait_reports_failed_and_deleted_documents(tmp_path, capsys):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.push("sessions", session("s1"))
            rows = [document(ada.id, name, status=name) for name in ("ready", "failed")]
            assert await ada.push("documents", *rows) == []
            client = ApiClient(browser(h), h.services.local_secret)
            email = h.services.accounts.accounts[ada.id].email
            with _progress() as progress:
                await _wait_until_embedded(
                    client, email, {name: name for name in ("ready", "failed", "gone")}, progress
                )

    run(scenario)
    _, *message = capsys.readouterr().err.splitlines()
    assert message == [
        "ready: ready, 1 of 3",
        "failed: not completely embedded, found by its words only, 2 of 3",
        "gone: deleted meanwhile, 3 of 3",
    ]


def test_import_skips_links_that_lead_outside_the_named_folders(tmp_path):
    papers, elsewhere = tmp_path / "papers", tmp_path / "elsewhere"
    (papers / "deep").mkdir(parents=True)
    elsewhere.mkdir()
    inside, outside = papers / "deep" / "b.txt", elsewhere / "c.txt"
    inside.write_text("b")
    outside.write_text("c")
    (papers / "1").symlink_to(inside)
    (papers / "2").symlink_to(outside)
    (papers / "3").symlink_to(elsewhere)
    (papers / "4").symlink_to(papers / "deep")
    (papers / "5").symlink_to(papers / "5")
    (papers / "6").symlink_to(tmp_path / "papers and more")
    assert taken(papers) == [papers / "1", inside]
    assert left_out(papers).keys() == {papers / name for name in "2356"}
    assert papers / "2" in taken(papers, elsewhere), "a link into a named folder must be followed"
    assert taken(papers / "2") == [papers / "2"], "a named link must be followed"


def test_import_reports_missing_and_irregular_files(home, tmp_path):
    papers = tmp_path / "papers"
    papers.mkdir()
    os.mkfifo(papers / "pipe")
    (papers / "gone").symlink_to(papers / "nowhere")
    (papers / "a.txt").write_text("The harbour bell rings at noon.")
    ran = home.run("import", tmp_path / "none.txt", papers, "--no-wait", *WHO)
    assert ran.code == 1
    assert ran.err.splitlines() == [
        f"{tmp_path / 'none.txt'}: No such file or directory",
        f"{papers / 'a.txt'}: stored, 1 passage",
        f"{papers / 'gone'}: skipped (neither a file nor a folder)",
        f"{papers / 'pipe'}: skipped (neither a file nor a folder)",
    ]
    assert ran.out == "1 of 2 files imported. Skipped: 2 neither a file nor a folder.\n"


def test_hidden_folder_is_imported_if_named_explicitly(tmp_path):
    (tmp_path / ".notes").mkdir()
    (tmp_path / ".notes" / "a.txt").write_text("a")
    assert taken(tmp_path / ".notes") == [tmp_path / ".notes" / "a.txt"]
