"""Account deletion erases all data of the account from disk at once and affects no other account.

Each test first checks that the scan finds the texts on disk before the deletion.
"""

import asyncio
import base64
import contextlib

from folder_listing import files_below, paths_below
from property.rows import block, dead, document, episode, fact, session
from server.in_process_server import Person, browser, check_problem, run, serve, with_token

EMAIL = "ada.lovelace@canary.example"
PASSWORD = "correct horse battery"
CANARY = "The xylophone of Bartholomew is hidden beneath the third oak."
LEAVE = {"confirm": "leave for good"}


async def sign_in(h, email=EMAIL):
    client = browser(h)
    return client, await client.post("/v1/sign-in", json={"email": email, "password": PASSWORD})


async def arrive(h, email=EMAIL):
    """Create an account with a password and a token, and sign a browser in.

    Return the person and the browser.
    """
    account = await h.services.account_service.create(email, "JIGGA", password=PASSWORD)
    client, answer = await sign_in(h, email)
    assert answer.status_code == 200, answer.text
    secret = (await client.post("/v1/tokens", json={"name": f"laptop of {email}"})).json()["secret"]
    return Person(account.id, with_token(h, secret)), client


async def fill(person):
    """Store content of several kinds, and delete a part of it."""
    await person.push("sessions", session("s1", title=CANARY))
    await person.push("episodes", episode("e1", "s1", aiResponse=CANARY))
    await person.push("facts", fact("f1", value=CANARY), fact("f2", value=f"forgotten {CANARY}"))
    await person.push("facts", dead(fact("f2")))
    await person.push("vectorEmbeddings", block("not-here-yet", text=f"waiting {CANARY}"))
    await person.upload("xylophone-notes.txt", CANARY)


def needles(h, person, blocks=()):
    """Return the bytes that no file may contain after the deletion: email, hashes of secrets, texts and vectors."""
    account = h.services.accounts.accounts[person.id]
    found = {
        text: text.encode()
        for text in (account.email, CANARY[10:50], "xylophone-notes", f"laptop of {account.email}")
    }
    found |= {f"hash of {t.kind}": t.hash.encode() for t in h.services.accounts.tokens_of(person.id)}
    if account.password:
        found["password"] = account.password.encode()
    for row in blocks:
        if row["embedding"]:
            found[f"vector {row['id']}"] = base64.b64decode(row["embedding"])[:64]
    return found


def forms(needle):
    """Yield each form in which files may contain the bytes: unchanged, in UTF-16, and in base64 at three alignments."""
    yield needle
    with contextlib.suppress(UnicodeDecodeError):
        yield needle.decode().encode("utf-16-le")
    for shift in range(3):
        coded = base64.b64encode(b"\0" * shift + needle)
        yield coded[4 if shift else 0 : -4]


def left_on_disk(folder, traces):
    """Return the needles that occur in the content or the name of a file below the folder."""
    places = [*files_below(folder).values(), *(str(path).encode() for path in paths_below(folder))]
    return {
        name
        for name, needle in traces.items()
        if any(form in place for place in places for form in forms(needle))
    }


def paths_of(folder, user_id):
    return [path for path in paths_below(folder) if user_id in path.name]


def test_account_deletion_leaves_other_accounts_unchanged(tmp_path):
    async def scenario():
        async with serve(tmp_path, model=True, erase_delay_s=60) as h:
            ada, ada_browser = await arrive(h)
            bob, bob_browser = await arrive(h, "bob@other.example")
            await fill(ada)
            await bob.upload("roses.txt", "Roses are planted in the garden every spring.")
            for person in (ada, bob):
                await h.services.background_jobs.jobs["embed"].drain(person.id)
            assert (await ada.search("xylophone"))["results"] and (await bob.search("roses"))["results"]
            bobs = await h.pull_all(bob)
            traces = needles(h, ada, await ada.pull("vectorEmbeddings"))
            assert any(name.startswith("vector ") for name in traces), (
                "the test needs a model: `make test` prepares it"
            )
            assert left_on_disk(tmp_path, traces) == set(traces), "control: the scan must find stored text"
            assert paths_of(tmp_path, ada.id)

            answer = await ada_browser.request("DELETE", "/v1/me", json=LEAVE)
            assert (answer.status_code, answer.json()) == (200, {"deleted": 1})
            assert "vademecum" not in ada_browser.cookies
            assert left_on_disk(tmp_path, traces) == set() and paths_of(tmp_path, ada.id) == []
            check_problem(await ada.call("GET", "/v1/me"), 401, "SIGNED_OUT")
            late = [{"newDocumentState": fact("f9")}]
            check_problem(await ada.call("POST", "/v1/sync/facts/0/push", json=late), 401, "SIGNED_OUT")
            check_problem((await sign_in(h))[1], 401, "SIGNED_OUT")
            assert paths_of(tmp_path, ada.id) == [], "a rejected request must not create the account's folder"

            assert await h.pull_all(bob) == bobs and (await bob.search("roses"))["results"]
            assert (await bob_browser.get("/v1/me")).json()["email"] == "bob@other.example"
            await h.drain_jobs(bob)
        assert left_on_disk(tmp_path, traces) == set() and paths_of(tmp_path, ada.id) == []
        async with serve(tmp_path) as h:
            assert [a.email for a in h.services.accounts.accounts.values()] == ["bob@other.example"]
            again = browser(h)
            again.headers.update(ada.client.headers)
            check_problem(await again.get("/v1/me"), 401, "SIGNED_OUT")
        assert left_on_disk(tmp_path, traces) == set() and paths_of(tmp_path, ada.id) == []

    run(scenario)


def test_account_deletion_requires_the_confirmation_sentence(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, ada_browser = await arrive(h)
            await fill(ada)
            await h.drain_jobs(ada)
            before = await h.pull_all(ada)
            for body in (
                {},
                {"confirm": ""},
                {"confirm": "yes"},
                {"confirm": True},
                {"confirm": "forget everything"},
                [],
            ):
                answer = await ada_browser.request("DELETE", "/v1/me", json=body)
                check_problem(answer, 400, "BAD_REQUEST")
            assert (await ada_browser.request("DELETE", "/v1/me")).status_code == 400
            assert await h.pull_all(ada) == before and (await sign_in(h))[1].status_code == 200

    run(scenario)


def test_administrator_deletion_erases_the_account_completely(tmp_path):
    async def scenario():
        async with serve(tmp_path, erase_delay_s=60) as h:
            # Call this first, because it creates the owner only if there is no account.
            link = await h.services.account_service.ensure_owner()
            ada, _ = await arrive(h)
            await fill(ada)
            await ada.search("xylophone")
            admin = browser(h)
            await admin.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
            traces = needles(h, ada)
            assert left_on_disk(tmp_path, traces) == set(traces)
            assert (await admin.delete(f"/v1/accounts/{ada.id}")).status_code == 200
            assert left_on_disk(tmp_path, traces) == set() and paths_of(tmp_path, ada.id) == []
            assert (await admin.get("/v1/me")).json()["admin"] is True
        assert left_on_disk(tmp_path, traces) == set()

    run(scenario)


def test_account_deletion_during_writes_leaves_no_files(tmp_path):
    """Pushes, uploads and searches that are still running must not recreate the folder."""

    async def scenario():
        async with serve(tmp_path) as h:
            for turn in range(3):
                ada, ada_browser = await arrive(h, f"{turn}.{EMAIL}")
                await fill(ada)
                traces = needles(h, ada)
                assert left_on_disk(tmp_path, traces)
                calls = []
                for number in range(15):
                    rows = [{"newDocumentState": fact(f"late{number}", value=CANARY)}]
                    calls += [
                        ada.call("POST", "/v1/sync/facts/0/push", json=rows),
                        ada.call("POST", "/v1/search", json={"query": "xylophone", "sessionId": "s1"}),
                        ada.call("GET", "/v1/me"),
                        ada.call("GET", "/v1/sync/facts/0/pull"),
                    ]
                calls.append(ada.upload("late.txt", f"{CANARY} And more of it, late."))
                calls.append(ada.call("GET", "/v1/export"))
                calls.insert(4 + 20 * turn, ada_browser.request("DELETE", "/v1/me", json=LEAVE))
                answers = await asyncio.wait_for(asyncio.gather(*calls), 60)
                assert not [a.text for a in answers if a.status_code == 500]
                await h.drain_jobs(ada)
                assert ada.id not in h.services.accounts.accounts
                assert (left_on_disk(tmp_path, traces), paths_of(tmp_path, ada.id)) == (set(), [])

    run(scenario)


def test_concurrent_deletions_of_one_account_succeed_and_leave_no_files(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, ada_browser = await arrive(h)
            await fill(ada)
            calls = [ada_browser.request("DELETE", "/v1/me", json=LEAVE) for _ in range(3)]
            answers = await asyncio.wait_for(asyncio.gather(*calls), 60)
            assert 200 in {a.status_code for a in answers} <= {200, 401, 404}
            assert paths_of(tmp_path, ada.id) == []

    run(scenario)


def test_account_deletion_closes_open_streams(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, ada_browser = await arrive(h)
            stream = asyncio.create_task(ada.call("GET", "/v1/sync/stream"))
            await h.streams(1)
            await ada_browser.request("DELETE", "/v1/me", json=LEAVE)
            assert (await asyncio.wait_for(stream, 60)).status_code == 200
            assert h.services.hub.count() == 0

    run(scenario)


def test_new_account_with_email_of_deleted_account_is_empty(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, ada_browser = await arrive(h)
            await fill(ada)
            await ada_browser.request("DELETE", "/v1/me", json=LEAVE)
            again, _ = await arrive(h)
            assert again.id != ada.id
            assert await h.pull_all(again) == {name: [] for name in h.services.registry.synced}
            late = document(again.id, "d1", activeSessions=["s1"])
            assert await again.push("documents", late) == [], (
                "ids of the deleted account must be usable again"
            )

    run(scenario)


def test_restore_does_not_recreate_deleted_accounts(tmp_path):
    async def scenario():
        async with serve(tmp_path / "data") as h:
            ada, ada_browser = await arrive(h)
            bob, _ = await arrive(h, "bob@other.example")
            await fill(ada)
            await bob.push("facts", fact("f1"))
            await h.services.backup.create(tmp_path / "copy")
            traces = needles(h, ada)
            await ada_browser.request("DELETE", "/v1/me", json=LEAVE)
            await h.services.restore.restore_all(tmp_path / "copy")
            assert ada.id not in h.services.accounts.accounts
            check_problem(await ada.call("GET", "/v1/me"), 401, "SIGNED_OUT")
            check_problem((await sign_in(h))[1], 401, "SIGNED_OUT")
            assert paths_of(tmp_path / "data", ada.id) == []
            assert left_on_disk(tmp_path / "data", traces) == set()
            assert set(await bob.live("facts")) == {"f1"}

    run(scenario)
