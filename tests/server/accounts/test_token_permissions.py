"""A token works with data. It makes nothing that lets somebody in: who has stolen it is out when it is revoked."""

import pytest
from litestar import Litestar

from property.rows import fact
from server.accounts.account_clients import OTHER, PASSWORD, account, bearer, owner, signed_in
from server.in_process_server import browser, house, refused, run
from vademecum.http.parameters import Req
from vademecum.http.routes.accounts.accounts import ROUTES

# Every way by which a request could make what lets somebody in later, of one's own account and of others.
WAYS_IN = [
    ("POST", "/v1/tokens", {"name": "the thief's"}, "vademecum token create"),
    ("POST", "/v1/password", {"new": OTHER}, "vademecum user link"),
    (
        "POST",
        "/v1/accounts",
        {"email": "eve@example.org", "tier": "FREE", "password": OTHER},
        "vademecum user add",
    ),
    ("PATCH", "/v1/accounts/{bob}", {"resetPassword": True}, "vademecum user link"),
    ("PATCH", "/v1/accounts/{bob}", {"tier": "FREE", "resetPassword": True}, "vademecum user link"),
    ("PATCH", "/v1/accounts/{me}", {"resetPassword": True}, "vademecum user link"),
]
# Who comes by a token does with its account, and its administrator with others', what lets nobody in.
HARMLESS = {
    "GET /v1/me",
    "DELETE /v1/me",
    "GET /v1/tokens",
    "DELETE /v1/tokens/{token_id}",
    "POST /v1/sign-out",
    "GET /v1/accounts",
    "DELETE /v1/accounts/{account_id}",
}
# These ask for a secret of their own, whoever sends it.
WITH_A_SECRET = {"GET /v1/sign-in", "POST /v1/sign-in", "POST /v1/sign-in/link"}


def secrets_of(h):
    """All that lets anybody in."""
    held = h.services.accounts
    return set(held.tokens), {a.email: (a.password, a.tier) for a in held.accounts.values()}


def local(h, email=""):
    """A command of the server's own machine."""
    client = browser(h)
    client.headers["Authorization"] = f"Local {h.services.local_secret}"
    if email:
        client.headers["X-Vademecum-User"] = email
    return client


@pytest.mark.parametrize(("method", "path", "body", "instead"), WAYS_IN)
def test_a_token_makes_nothing_that_lets_somebody_in(tmp_path, method, path, body, instead):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)  # who has no password yet
            thief, made = await bearer(h, boss)
            bob = (await account(boss, "bob@example.org"))["userId"]
            before = secrets_of(h)
            at = path.format(bob=bob, me=thief.id)
            said = refused(await thief.call(method, at, json=body), 403, "FORBIDDEN")["detail"]
            assert "API token" in said and "Nothing was changed" in said and instead in said
            assert secrets_of(h) == before
            assert (await boss.delete(f"/v1/tokens/{made['token']['id']}")).status_code == 200
            refused(await thief.call("GET", "/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_each_route_of_accounts_is_known_to_make_a_way_in_or_not():
    """A new one is put into one of the lists above, and into `WAYS_IN` with a refusal."""
    ways = {f"{method} {path.format(bob='{account_id}', me='{account_id}')}" for method, path, *_ in WAYS_IN}
    ours = {
        f"{method} {route.path_format}"
        for route in Litestar(ROUTES, openapi_config=None, request_class=Req).routes
        for method in route.methods - {"OPTIONS", "HEAD"}
    }
    assert ours == ways | HARMLESS | WITH_A_SECRET


def test_browsers_and_the_commands_of_the_machine_make_them_as_before(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            bob = (await account(boss, "bob@example.org", password=None))["userId"]
            for who in (boss, local(h)):
                path, reset = f"/v1/accounts/{bob}", {"resetPassword": True}
                assert (await who.patch(path, json=reset)).json()["link"].startswith("/v1/sign-in?link=")
            there = local(h, "bob@example.org")
            assert (await there.post("/v1/tokens", json={})).status_code == 201
            assert (await there.post("/v1/password", json={"new": PASSWORD})).status_code == 200
            here = await signed_in(h, "bob@example.org")
            assert (await here.post("/v1/tokens", json={})).status_code == 201
            made = {"email": "eve@example.org", "tier": "FREE", "password": OTHER}
            assert (await local(h).post("/v1/accounts", json=made)).status_code == 201
            assert (await boss.post("/v1/password", json={"new": PASSWORD})).status_code == 200

    run(scenario)


def test_a_token_goes_on_with_data_and_lists_and_revokes_tokens_itself_too(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada, mine = await bearer(h, boss)
            _, other = await bearer(h, boss, "other")
            await ada.add("facts", fact("f1"))
            assert (await ada.upload("notes.txt", "Words.", session=None)).status_code == 201
            assert len((await ada.call("GET", "/v1/tokens")).json()) == 2
            for made in (other, mine):
                revoked = await ada.call("DELETE", f"/v1/tokens/{made['token']['id']}")
                assert revoked.json() == {"deleted": 1}
            refused(await ada.call("GET", "/v1/tokens"), 401, "SIGNED_OUT")

    run(scenario)


def test_a_token_changes_a_password_that_it_knows_and_no_other(tmp_path):
    """Whoever knows the password can sign in by it: the token adds nothing."""

    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            await account(boss, "ada@example.org")
            ada, _ = await bearer(h, await signed_in(h, "ada@example.org"))
            for body in ({"new": OTHER}, {"new": OTHER, "current": "not this one"}):
                refused(await ada.call("POST", "/v1/password", json=body), 403, "FORBIDDEN")
            known = {"new": OTHER, "current": PASSWORD}
            assert (await ada.call("POST", "/v1/password", json=known)).status_code == 200
            await signed_in(h, "ada@example.org", OTHER)

    run(scenario)


def test_an_administrators_token_makes_accounts_that_nobody_is_in_and_changes_tiers(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            root, _ = await bearer(h, await owner(h))
            made = await root.call("POST", "/v1/accounts", json={"email": "bob@example.org", "tier": "FREE"})
            assert made.status_code == 201
            path = f"/v1/accounts/{made.json()['userId']}"
            changed = await root.call("PATCH", path, json={"tier": "JIVE"})
            assert changed.json()["account"]["tier"] == "JIVE" and changed.json()["link"] is None
            assert (await root.call("DELETE", path)).json() == {"deleted": 1}

    run(scenario)
