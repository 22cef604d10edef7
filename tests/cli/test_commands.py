"""All commands in real processes, with and without a running server: their output and their error messages."""

import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from cli.command_runner import COMMAND, TOKEN, Home
from vademecum.cli.commands import main
from vademecum.services.accounts import local_auth

LEASE = "The lease ends on the thirty-first of March. The tenant gives notice three months before."
RECIPE = "Beat four eggs with sugar and flour, and bake the cake for forty minutes."
MODES = ["running", "alone"]


@pytest.fixture(scope="module", params=MODES)
def home(request, tmp_path_factory):
    """Return a data folder with or without a running server. Tests share it and use different accounts."""
    there = Home(tmp_path_factory.mktemp(request.param) / "data")
    if request.param == "alone":
        yield there
        return
    with there.serve():
        yield there


def papers(folder):
    """Create two valid files, a copy of one of them, a hidden file, and two files without text."""
    (folder / "deep").mkdir(parents=True)
    (folder / "lease.txt").write_text(LEASE)
    (folder / "deep" / "recipe.md").write_text(RECIPE)
    (folder / "deep" / "copy of lease.txt").write_text(LEASE)
    (folder / ".hidden.txt").write_text("nobody asked for this one")
    (folder / "empty.txt").write_text("")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.7\nnothing of a PDF follows")
    return folder


BAD = {"empty.txt", "broken.pdf"}


@contextmanager
def server_on(home):
    """Yield the running server, or a temporary one."""
    if home.running is not None:
        yield home.running
        return
    with home.serve() as server:
        yield server
        server.end()


def commands(group=main, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        yield (*path, name), command
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name))


@pytest.mark.parametrize("words", [words for words, _ in commands()], ids=" ".join)
def test_each_command_has_help(words):
    result = CliRunner().invoke(main, [*words, "--help"])
    assert result.exit_code == 0
    usage, _, rest = result.output.partition("\n\n")
    assert usage.startswith("Usage:")
    assert re.match(r"  [A-Z][^\n]{15,}", rest), f"no description: {result.output}"


def test_help_examples_are_valid_commands():
    shown = CliRunner().invoke(main, ["--help"]).output
    examples = re.findall(r"^  \w+: +vademecum (.+)$", shown, re.M)
    assert len(examples) >= 4
    for example in examples:
        known: click.Command = main
        words = iter(example.split())
        while isinstance(known, click.Group):
            known = known.get_command(click.Context(known), next(words))
        flags = {flag for parameter in known.params for flag in parameter.opts}
        assert set(re.findall(r"--[\w-]+", example)) <= flags


def test_installed_command_and_module_both_print_help():
    script = Path(sys.executable).with_name("vademecum")
    for command in ([str(script), "--help"], [*COMMAND, "user", "-h"]):
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith("Usage:")


def test_commands_have_data_and_json_options():
    plain = {
        "serve",
        "tier",
        "admin",
        "link",
        "remove",
        "create",
        "revoke",
        "pull",
        "use",
        "pause",
        "resume",
        "verify",
        "record",
        "claim",
        "mcp",
    }
    for words, command in commands():
        if isinstance(command, click.Group):
            continue
        options = {flag for parameter in command.params for flag in parameter.opts}
        assert "--data" in options, words
        assert ("--json" in options) == (words[-1] not in plain), words


def shape(value):
    """Return the keys and types of a JSON value, without parts that differ between data folders."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items() if key not in ("files", "usage", "limits")}
    if isinstance(value, list):
        return [shape(inner) for inner in value]
    return value if isinstance(value, bool) else type(value).__name__


def masked(text, home):
    text = text.replace(str(home.data.parent), "HOME").replace(str(home.data), "DATA")
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", text)
    text = TOKEN.sub("SECRET", text)
    return re.sub(r"\d+([.:]\d+)*", "N", text)


def story(home):
    """Run all commands that work on data. Map each command line to its masked output."""
    folder = papers(home.data.with_name("papers"))
    copy = home.data.with_name("copy")
    outputs = {}

    def do(*words, code=0):
        done = home.run(*words)
        assert done.code == code, f"{words}: {done.code}\n{done.out}\n{done.err}"
        outputs[" ".join(map(str, words)).replace(str(home.data.parent), "HOME")] = (
            shape(done.json) if "--json" in words else masked(done.out, home)
        )
        return done

    who = ("--user", "ada@example.org", "--session", "thesis")
    do("user", "add", "ada@example.org", "--tier", "JIGGA", "--json")
    do("user", "add", "bob@example.org", "--tier", "FREE")
    do("user", "tier", "bob@example.org", "jive")
    do("user", "list")
    do("user", "list", "--json")
    do("user", "link", "bob@example.org")
    do("token", "create", "ada@example.org", "--name", "laptop")
    do("token", "list", "ada@example.org")
    (token,) = do("token", "list", "ada@example.org", "--json").json
    revoked = home.ok("token", "revoke", "ada@example.org", token["id"])
    outputs["token revoke"] = masked(revoked.out, home)
    do("import", folder, *who, "--json", code=1)
    do("search", "tenant notice", *who)
    do("search", "tenant notice", *who, "--json")
    do("backup", copy, "--json")
    do("restore", copy, "--yes", "--json")
    do("forget", "--user", "ada@example.org", "--yes", "--json")
    do("user", "remove", "bob@example.org", "--yes")
    do("models", "list", "--json")
    return outputs


def test_commands_print_the_same_with_and_without_server(tmp_path):
    with_server, without = Home(tmp_path / "with" / "data"), Home(tmp_path / "without" / "data")
    for home in (with_server, without):
        home.data.parent.mkdir()
    with without.serve() as server:  # start once, because the first start creates the owner
        server.end()
    with with_server.serve(), ThreadPoolExecutor() as both:
        one, other = both.map(story, (with_server, without))
    assert one.keys() == other.keys()
    for what in one:
        assert one[what] == other[what], what
    assert "lease.txt" in one["search tenant notice --user ada@example.org --session thesis"]


def test_user_commands_add_list_change_and_remove_an_account(home):
    made = home.ok("user", "add", "carl@example.org", "--tier", "free", "--json").json
    assert (made["email"], made["tier"], made["admin"]) == ("carl@example.org", "FREE", False)
    home.ok("user", "tier", "CARL@example.org", "jigga")
    listed = {one["email"]: one for one in home.ok("user", "list", "--json").json}
    assert listed["carl@example.org"]["tier"] == "JIGGA"
    assert listed["carl@example.org"]["usage"]["documents"] == 0
    assert "carl@example.org" in home.ok("user", "list").out
    assert not list(home.data.rglob(f"*{made['userId']}*")), "an account without data must have no files"
    home.ok("forget", "--user", "carl@example.org", "--yes")
    assert list(home.data.glob(f"users/*/{made['userId']}"))
    home.ok("user", "remove", "carl@example.org", "--yes")
    assert "carl@example.org" not in home.ok("user", "list").out
    assert not list(home.data.rglob(f"*{made['userId']}*"))


def test_unconfirmed_user_removal_keeps_the_account(home):
    home.add("dora@example.org")
    for command in ("user remove dora@example.org", "forget --user dora@example.org"):
        result = home.run(*command.split(), stdin="no\n")
        assert result.code != 0 and "Traceback" not in result.err
    assert "dora@example.org" in home.ok("user", "list").out


def test_command_reports_unwritable_output(home):
    with Path("/dev/full").open("w") as full:
        command = [*COMMAND, "user", "list", "--data", home.data]
        ran = subprocess.run(command, env=home.environment(), stdout=full, stderr=subprocess.PIPE, text=True)
    message = "Error: The output could not be written (No space left on device). Your request may have been carried out: "
    assert (ran.returncode, ran.stderr) == (1, f"{message}check before you repeat it.\n")


def test_api_token_works_until_revoked(home):
    home.add("emma@example.org")
    made = home.ok("token", "create", "emma@example.org", "--name", "laptop")
    assert made.out.endswith("\n") and TOKEN.fullmatch(made.out.strip())
    (token,) = home.ok("token", "list", "emma@example.org", "--json").json
    assert token["name"] == "laptop" and made.out.strip() not in str(token)
    with server_on(home) as server, server.client(made.out.strip()) as emma:
        assert emma.get("/v1/me").json()["email"] == "emma@example.org"
        home.ok("token", "revoke", "emma@example.org", token["id"])
        assert emma.get("/v1/me").status_code == 401
    assert home.ok("token", "list", "emma@example.org", "--json").json == []


def test_import_reports_unreadable_files_and_skips_duplicates(home, tmp_path):
    home.add("fred@example.org")
    folder = papers(tmp_path / "papers")
    who = ("--user", "fred@example.org", "--session", "thesis")
    first = home.run("import", folder, *who, "--json")
    assert first.code == 1, "import must fail if it cannot read some files"
    results = {Path(one["file"]).name: one for one in first.json}
    assert results.keys() == {"lease.txt", "recipe.md", "copy of lease.txt"} | BAD
    assert {name for name, one in results.items() if "error" in one} == BAD
    for name in BAD:
        assert len(results[name]["error"]) > 20 and "Traceback" not in results[name]["error"]
    assert results["lease.txt"]["documentId"] == results["copy of lease.txt"]["documentId"]
    assert [results[n]["existing"] for n in ("recipe.md", "lease.txt", "copy of lease.txt")].count(True) == 1

    again = home.run("import", folder, *who)
    assert again.code == 1 and "3 of 5 files imported." in again.out
    assert all(name in again.err for name in BAD)
    (fred,) = [one for one in home.ok("user", "list", "--json").json if one["email"] == "fred@example.org"]
    assert fred["usage"]["documents"] == 2

    found = home.ok("search", "tenant notice", *who, "--limit", 1, "--json")
    (best,) = found.json["results"]
    assert best["filename"] in ("lease.txt", "copy of lease.txt") and "tenant" in best["text"]
    assert len(found.json["scope"]["documentIds"]) == 2
    empty = home.ok("search", "tenant notice", "--user", "fred@example.org", "--session", "other", "--json")
    assert empty.json["results"] == [] and empty.json["scope"]["documentIds"] == []

    receipt = home.ok("forget", "--user", "fred@example.org", "--json", stdin="forget everything\n")
    erased = json.loads(receipt.out[receipt.out.index("{") :])
    assert erased["rows"] == 5 and erased["leftovers"] == 0 and erased["checked"] > 0 and erased["bytes"] > 0
    assert "ackup" in erased["note"], "the note must say that backups are not erased"


def test_forget_project_erases_only_that_project(tmp_path):
    home = Home(tmp_path / "data")
    home.add("gina@example.org")
    token, who = home.token("gina@example.org"), ("forget", "--user", "gina@example.org")
    with home.serve() as server, server.client(token) as gina:
        made = {
            name: gina.post("/v1/projects", json={"name": name}).json()["id"]
            for name in ("Mill", "Barn", "Twin")
        }
        gina.post("/v1/projects", json={"name": "twin"})
        for name, project_id in made.items():
            body = {"externalId": name, "name": name, "projectId": project_id}
            assert gina.post("/v1/sessions", json=body).status_code == 201
        assert "no project Nowhere" in home.run(*who, "--project", "Nowhere", "--yes").refusal()
        assert "2 projects have the name Twin" in home.run(*who, "--project", "Twin", "--yes").refusal()
        assert "requires --project" in home.run(*who, "--sessions", "--yes").refusal()
        receipt = home.ok(*who, "--project", "mill", "--json", stdin="forget project\n").out
        assert json.loads(receipt[receipt.index("{") :])["leftovers"] == 0
        home.ok(*who, "--project", made["Barn"], "--sessions", "--yes")
        left = {one["name"] for one in gina.get("/v1/projects").json()["projects"]}
        assert left == {"Twin", "twin"}
        project_of_chat = {
            one["title"]: one.get("projectId") for one in gina.get("/v1/sessions").json()["sessions"]
        }
        assert project_of_chat == {"Mill": None, "Twin": made["Twin"]}, (
            "sessions must move to the pool, or be deleted with --sessions"
        )


REFUSED = {
    "an unknown account": ("token create nobody@example.org", "nobody@example.org"),
    "an unknown account to search": ("search x --user nobody@example.org --session s", "nobody@example.org"),
    "an unknown account to change": ("user tier nobody@example.org FREE", "nobody@example.org"),
    "an unknown account to remove": ("user remove nobody@example.org --yes", "nobody@example.org"),
    "an unknown account to forget": ("forget --user nobody@example.org --yes", "nobody@example.org"),
    "an unknown account to import for": (
        f"import {__file__} --user nobody@example.org --session s",
        "nobody",
    ),
    "an unknown token": ("token revoke ivan@example.org 123", "token"),
    "a file that is not there": ("import /no/such/file --user ivan@example.org --session s", "/no/such/file"),
    "a wrong tier": ("user tier ivan@example.org GOLD", "GOLD"),
    "a wrong tier for a new one": ("user add judy@example.org --tier GOLD", "GOLD"),
    "what is no email": ("user add judy --tier FREE", "email"),
    "an account that is there": ("user add ivan@example.org --tier FREE", "ivan@example.org"),
    "a tier that may not search": ("search x --user ivan@example.org --session s", "JIVE"),
    "no backup": ("restore {here} --yes", "not a backup"),
    "a backup onto something": ("backup {here}", "exists"),
}


def test_each_command_error_is_one_sentence_that_names_its_cause(home, tmp_path):
    home.ok("user", "add", "ivan@example.org", "--tier", "FREE")
    (tmp_path / "something").write_text("here")

    def ask(case):
        words, named = REFUSED[case]
        done = home.run(*[word.format(here=tmp_path) for word in words.split()])
        try:
            message = done.refusal()
            return f"{named} is not named: {message}" if named not in message else ""
        except AssertionError as error:
            return str(error)

    if home.running is None:  # without a server, only one command at a time can use the folder
        wrong = {case: ask(case) for case in REFUSED}
    else:
        with ThreadPoolExecutor(2) as both:
            wrong = dict(zip(REFUSED, both.map(ask, REFUSED), strict=True))
    assert {case: message for case, message in wrong.items() if message} == {}
    assert (tmp_path / "something").read_text() == "here" and len(list(tmp_path.iterdir())) == 1


def test_user_add_requires_tier_and_prints_limits(home):
    message = home.run("user", "add", "kim@example.org").refusal()
    assert (
        "--tier" in message
        and "FREE: 100 documents of up to 2 MB, 20 MB in all; documents are synced, but" in message
    )
    assert "kim@example.org" not in home.ok("user", "list").out
    added = home.ok("user", "add", "kim@example.org", "--tier", "jive").out
    assert "(JIVE)" in added and "100 documents of up to 10 MB, 100 MB in all; questions search the" in added


def test_command_without_server_prints_no_log(tmp_path):
    """Only some commands need a model, so the other commands must not log that it is missing."""
    home = Home(tmp_path / "data")
    assert home.ok("user", "add", "ada@example.org", "--tier", "JIVE").err == ""
    assert home.ok("token", "create", "ada@example.org").err == ""
    assert re.fullmatch(r"Error: [^\n]+\n", home.run("token", "create", "nobody@example.org").err)


def test_invalid_session_id_is_explained(tmp_path):
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    message = home.run("import", __file__, "--user", "ada@example.org", "--session", "my thesis").refusal()
    assert "my thesis" in message and "regex" not in message and "$." not in message


def test_user_link_ignores_the_address_of_a_crashed_server(tmp_path):
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    local_auth.publish(home.data, local_auth.ServerInfo("http://127.0.0.1:29999", 1, "secret"))
    assert home.ok("user", "link", "ada@example.org").out.startswith("http://127.0.0.1:8787/")
