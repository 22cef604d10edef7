"""The output of `vademecum search`: its excerpts, and notes about incomplete results."""

from cli.command_runner import Home
from property.rows import block, document, sync_path
from vademecum.cli.excerpt import excerpt
from vademecum.cli.search import describe_limits

FILLER = "one after the other of the many things that were said " * 20


def scope(documents=14, **more):
    ids = [str(number) for number in range(documents)]
    return {"sessionId": "s1", "documentIds": ids, "mode": "hybrid", "complete": True, **more}


def test_search_command_rejects_an_empty_query(tmp_path):
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    for question in ("", "  "):
        done = home.run("search", question, "--user", "ada@example.org", "--session", "s1")
        assert done.refusal() == "The question is empty."


def test_search_command_counts_documents_without_vectors():
    message = "13 of 14 documents are not embedded yet, so they are found by words only."
    assert list(describe_limits(scope(pending=13))) == [message]
    assert list(describe_limits(scope(pending=1))) == [
        "1 of 14 documents is not embedded yet, so it is found by words only."
    ]
    assert list(describe_limits(scope(pending=0))) == [] and list(describe_limits(scope())) == []
    assert list(describe_limits(scope(pending=13, mode="words"))) == [], (
        "a search by words finds documents without vectors"
    )


def test_search_output_contains_no_terminal_control_characters(tmp_path):
    """A document may contain escape sequences that change the window title or the clipboard, or imitate a result."""
    evil = "\x1b]52;c;aGk=\x07zebra\x1b[2J \x9b31m \u202e\r\n1. other.pdf"
    home = Home(tmp_path / "data")
    user = home.add("ada@example.org")
    with home.serve() as server, server.client(home.token("ada@example.org")) as ada:
        held = document(user, "d1", activeSessions=["s1"], filename=evil)
        for name, row in (("documents", held), ("vectorEmbeddings", block("d1", text=evil))):
            pushed = ada.post(f"{sync_path(name)}/push", json=[{"newDocumentState": row}])
            assert pushed.json() == []
        home.ok("token", "create", "ada@example.org", "--name", evil[:100])
        found = home.ok("search", "zebra", "--user", "ada@example.org", "--session", "s1", "--mode", "words")
        listed = home.ok("token", "list", "ada@example.org")
    for message in (found.out, listed.out):
        assert "zebra" in message
        assert not set(message) & set("\x1b\x07\x9b\r\u202e"), repr(message)
        assert not any(line.startswith("1. other") for line in message.splitlines())


def test_excerpt_of_short_passage_is_complete():
    assert excerpt("Two\n lines.", "two") == "Two lines."


def test_excerpt_contains_query_words_and_ends_between_words():
    text = f"{FILLER}The Harbour bell rings at noon. {FILLER}"
    shown = excerpt(text, "what of the HARBOUR bell")
    assert "The Harbour bell rings at noon." in shown and len(shown) <= 400
    assert shown.startswith("… ") and shown.endswith(" …")
    assert set(shown.strip("… ").split()) <= set(text.split()), "the excerpt must contain only whole words"


def test_excerpt_at_passage_end_has_no_ellipsis():
    first, last = excerpt(f"Harbour {FILLER}", "harbour"), excerpt(f"{FILLER}harbour", "harbour")
    assert first.startswith("Harbour") and first.endswith(" …") and len(first) <= 400
    assert last.startswith("… ") and last.endswith("harbour") and len(last) <= 400
    assert excerpt(FILLER, "nothing of it").startswith("one after")


def test_excerpt_of_text_without_spaces_is_bounded():
    assert 390 <= len(excerpt("港" * 1000, "鐘")) <= 402


def test_search_command_prints_excerpt_with_the_match(tmp_path):
    home = Home(tmp_path / "data")
    home.add("ada@example.org")
    who = ("--user", "ada@example.org", "--session", "s1")
    note = tmp_path / "note.txt"
    note.write_text(f"{FILLER[:540]}The harbour bell rings at noon. {FILLER[:540]}")
    home.ok("import", note, *who)
    assert "harbour bell rings at noon" in home.ok("search", "harbour bell", *who).out


def test_help_of_forget_and_user_link_names_the_account(tmp_path):
    home = Home(tmp_path / "data")
    forget, link = (
        " ".join(home.ok(*words, "--help").out.split()) for words in (["forget"], ["user", "link"])
    )
    assert "Email of the account whose data is erased" in forget
    assert "Print a one-time sign-in link for a new account" in link
