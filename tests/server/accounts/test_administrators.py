"""The first start creates an owner. Only administrators create, change and remove accounts."""

import asyncio
import json

import msgspec
import pytest

from property.rows import session
from server.accounts.account_clients import PASSWORD, account, bearer, owner, signed_in
from server.in_process_server import browser, check_problem, run, serve
from vademecum.errors import Conflict

ADMIN_CALLS = [
    ("GET", "/v1/accounts", None),
    ("POST", "/v1/accounts", {"email": "eve@example.org", "tier": "JIGGA"}),
    ("PATCH", "/v1/accounts/{}", {"tier": "JIGGA"}),
    ("PATCH", "/v1/accounts/{}", {"resetPassword": True}),
    ("POST", "/v1/local/administrator", {"userId": "{}", "admin": True}),
    ("DELETE", "/v1/accounts/{}", None),
]


def test_first_server_start_creates_a_local_owner(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            me = (await admin.get("/v1/me")).json()
            assert (me["tier"], me["admin"]) == ("JIGGA", True)
            assert [a["userId"] for a in (await admin.get("/v1/accounts")).json()] == [me["userId"]]
        async with serve(tmp_path) as h:
            assert await h.services.account_service.ensure_owner() is None, (
                "no second link is created while the owner has a session"
            )
            assert len(h.services.accounts.accounts) == 1

    run(scenario)


def test_administrator_routes_reject_users_who_are_not_administrators(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            bob = await h.person("FREE")
            before = dict(h.services.accounts.accounts)
            for method, path, body in ADMIN_CALLS:
                check_problem(await bob.call(method, path.format(bob.id), json=body), 403, "FORBIDDEN")
                answer = await browser(h).request(method, path.format(bob.id), json=body)
                check_problem(answer, 401, "SIGNED_OUT")
                assert h.services.accounts.accounts == before

    run(scenario)


def test_administrator_creates_lists_and_removes_accounts(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            made = await account(admin, "Bob@Example.org", "JIVE")
            assert (made["email"], made["tier"], made["admin"]) == ("Bob@Example.org", "JIVE", False)
            listed = (await admin.get("/v1/accounts")).json()
            assert made in listed and len(listed) == 2
            assert "argon2" not in json.dumps(listed) and PASSWORD not in json.dumps(listed)
            client = await signed_in(h, "bob@example.org")
            bob, _ = await bearer(h, client)
            assert bob.id == made["userId"]
            assert (await admin.delete(f"/v1/accounts/{bob.id}")).json() == {"deleted": 1}
            assert len((await admin.get("/v1/accounts")).json()) == 1
            check_problem(await bob.call("GET", "/v1/me"), 401, "SIGNED_OUT")
            check_problem(await client.get("/v1/me"), 401, "SIGNED_OUT")
            check_problem(await admin.delete(f"/v1/accounts/{bob.id}"), 404, "NOT_FOUND")
            answer = await browser(h).post(
                "/v1/sign-in", json={"email": "bob@example.org", "password": PASSWORD}
            )
            check_problem(answer, 401, "SIGNED_OUT")

    run(scenario)


def test_differently_spelled_emails_belong_to_one_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "bob@example.org", password=None)
            for again in ("bob@example.org", "BOB@EXAMPLE.ORG", " bob@example.org ", "Bob@example.Org"):
                check_problem(
                    await admin.post("/v1/accounts", json={"email": again, "tier": "FREE"}), 409, "CONFLICT"
                )
            assert len((await admin.get("/v1/accounts")).json()) == 2

    run(scenario)


def test_concurrent_requests_create_one_account_per_email(tmp_path):
    """A second request must not create another account while the first request hashes the password."""

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await admin.get("/v1/me")
            body = {"email": "bob@example.org", "tier": "FREE", "password": PASSWORD}
            answers = await asyncio.gather(*(admin.post("/v1/accounts", json=body) for _ in range(3)))
            assert sorted(a.status_code for a in answers) == [201, 409, 409]
            assert len((await admin.get("/v1/accounts")).json()) == 2

    run(scenario)


def test_invalid_email_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            for email in ("", "bob", "@", "bob@", "a b@example.org", "bob@ex\nample.org", "b" * 300 + "@x"):
                check_problem(
                    await admin.post("/v1/accounts", json={"email": email, "tier": "FREE"}),
                    400,
                    "BAD_REQUEST",
                )
            assert len(h.services.accounts.accounts) == 1

    run(scenario)


def test_concurrent_change_does_not_recreate_removed_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            for number in range(5):
                bob = (await account(admin, f"bob{number}@example.org", password=None))["userId"]
                calls = [admin.patch(f"/v1/accounts/{bob}", json={"tier": "JIVE"}) for _ in range(3)]
                calls.insert(number % 4, admin.delete(f"/v1/accounts/{bob}"))
                answers = await asyncio.gather(*calls)
                assert {a.status_code for a in answers} <= {200, 404}
                assert bob not in h.services.accounts.accounts
        async with serve(tmp_path) as h:
            assert [a.email for a in h.services.accounts.accounts.values()] == ["owner@localhost"]

    run(scenario)


def test_first_accounts_of_new_data_folder_can_open_concurrently(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            people = [await h.person() for _ in range(6)]
            assert (
                await asyncio.gather(*(person.push("sessions", session("s1")) for person in people))
                == [[]] * 6
            )
            answers = await asyncio.gather(*(person.call("GET", "/v1/me") for person in people))
            assert [a.status_code for a in answers] == [200] * 6
            assert [a.json()["userId"] for a in answers] == [person.id for person in people]

    run(scenario)


def test_account_list_creates_no_records_files(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin, ada = await owner(h), await h.person()
            for number in range(3):
                await account(admin, f"new{number}@example.org", password=None)
            await ada.upload("lease.txt", "The lease ends in March.")
            await h.drain_jobs(ada)
            listed = {one["userId"]: one["usage"] for one in (await admin.get("/v1/accounts")).json()}
            assert len(listed) == 5 and listed.pop(ada.id)["documents"] == 1
            assert list(listed.values()) == [{"documents": 0, "bytes": 0}] * 4
            assert len(list(tmp_path.rglob("records.duckdb"))) == 1

    run(scenario)


def test_account_lookup_by_email_opens_no_records(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin, ada = await owner(h), await h.person()
            made = await account(admin, "José@example.org", password=None)
            await ada.push("sessions", session("s1"))
            async with h.services.users.detached(ada.id):
                pass
            for email in ("José@example.org", "jose\u0301@EXAMPLE.org", " josé@example.org"):
                answer = await admin.get("/v1/accounts", params={"email": email})
                assert answer.json() == [made], email
            for email in ("nobody@example.org", ""):
                assert (await admin.get("/v1/accounts", params={"email": email})).json() == []
            assert h.services.users.attached_stores() == []

    run(scenario)


LEAVE = {"confirm": "leave for good"}


def test_last_administrator_cannot_be_deleted_while_other_accounts_exist(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            me = (await admin.get("/v1/me")).json()["userId"]
            bob = (await account(admin, "bob@example.org"))["userId"]
            before = dict(h.services.accounts.accounts)
            for asked in (
                admin.delete(f"/v1/accounts/{me}"),
                admin.request("DELETE", "/v1/me", json=LEAVE),
            ):
                detail = check_problem(await asked, 409, "CONFLICT")["detail"]
                assert "the only administrator" in detail and "vademecum user admin" in detail
                assert h.services.accounts.accounts == before
            with pytest.raises(Conflict, match="the only administrator"):
                await h.services.account_service.change_admin(before[me], admin=False)
            body = {"userId": bob, "admin": True}
            check_problem(await admin.post("/v1/local/administrator", json=body), 403, "FORBIDDEN")
            assert h.services.accounts.accounts == before
            await h.services.account_service.change_admin(before[bob], admin=True)
            assert (await admin.request("DELETE", "/v1/me", json=LEAVE)).json() == {"deleted": 1}
            client = await signed_in(h, "bob@example.org")
            assert [one["userId"] for one in (await client.get("/v1/accounts")).json()] == [bob]

    run(scenario)


def test_concurrent_removals_keep_one_administrator(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "ada@example.org", password=None)
            me = h.services.accounts.by_email("owner@localhost")
            for turn in range(4):
                made = await account(admin, f"bob{turn}@example.org", password=None)
                bob = await h.services.account_service.change_admin(
                    h.services.accounts.accounts[made["userId"]], admin=True
                )
                ways = [
                    h.services.account_deletion.delete(bob),
                    h.services.account_service.change_admin(me, admin=False),
                ]
                ended = await asyncio.gather(*(ways if turn % 2 else reversed(ways)), return_exceptions=True)
                assert [type(one) for one in ended].count(Conflict) == 1
                assert [one.admin for one in h.services.accounts.accounts.values()].count(True) == 1
                await h.services.account_service.change_admin(me, admin=True)
                if h.services.accounts.exists(bob.id):
                    await h.services.account_service.change_admin(bob, admin=False)

    run(scenario)


def test_server_start_creates_owner_after_last_account_is_deleted(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            assert (await admin.request("DELETE", "/v1/me", json=LEAVE)).json() == {"deleted": 1}
            assert not h.services.accounts.accounts
        async with serve(tmp_path) as h:
            assert (await (await owner(h)).get("/v1/me")).json()["admin"]

    run(scenario)


def test_server_start_makes_owner_administrator_if_none_exists(tmp_path):
    """This happens if an old version removed the last administrator, or accounts were added before the first start."""

    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            admin = await owner(h)
            assert len((await admin.get("/v1/accounts")).json()) == 2
            found = h.services.accounts.by_email("owner@localhost")
            await h.services.accounts.change_account(
                found.id, lambda a: msgspec.structs.replace(a, admin=False)
            )
        async with serve(tmp_path) as h:
            await h.services.account_service.ensure_owner()
            assert (
                h.services.accounts.accounts[found.id].admin
                and not h.services.accounts.accounts[ada.id].admin
            )

    run(scenario)
