"""API tokens give access to data but cannot create credentials. So revoking a stolen token ends the thief's access."""

import pytest
from litestar import Litestar

from property.rows import fact
from server.accounts.account_clients import OTHER, PASSWORD, account, bearer, owner, signed_in
from server.in_process_server import browser, check_problem, run, serve
from vademecum.http.parameters import Req
from vademecum.http.routes.accounts.accounts import ROUTES

# Every request that creates a credential, for the user's own account or for another one.
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
# Requests that create no credential. API tokens may make them.
HARMLESS = {
    "GET /v1/me",
    "DELETE /v1/me",
    "GET /v1/tokens",
    "DELETE /v1/tokens/{token_id}",
    "POST /v1/sign-out",
    "GET /v1/accounts",
    "DELETE /v1/accounts/{account_id}",
}
# Requests that carry their own secret and need no session.
WITH_A_SECRET = {"GET /v1/sign-in", "POST /v1/sign-in", "POST /v1/sign-in/link"}


def secrets_of(h):
    """Return all stored credentials."""
    held = h.services.accounts
    return set(held.tokens), {a.email: (a.password, a.tier) for a in held.accounts.values()}


def local(h, email=""):
    """Return a client that authenticates with the local secret."""
    client = browser(h)
    client.headers["Authorization"] = f"Local {h.services.local_secret}"
    if email:
        client.headers["X-Vademecum-User"] = email
    return client


@pytest.mark.parametrize(("method", "path", "body", "instead"), WAYS_IN)
def test_api_token_cannot_create_credentials(tmp_path, method, path, body, instead):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)  # the owner has no password yet
            thief, made = await bearer(h, admin)
            bob = (await account(admin, "bob@example.org"))["userId"]
            before = secrets_of(h)
            at = path.format(bob=bob, me=thief.id)
            detail = check_problem(await thief.call(method, at, json=body), 403, "FORBIDDEN")["detail"]
            assert "API token" in detail and "Nothing was changed" in detail and instead in detail
            assert secrets_of(h) == before
            assert (await admin.delete(f"/v1/tokens/{made['token']['id']}")).status_code == 200
            check_problem(await thief.call("GET", "/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_every_account_route_is_listed_by_whether_it_creates_credentials():
    """Add each new account route to one of the lists above, and to `WAYS_IN` if the server must reject API tokens."""
    ways = {f"{method} {path.format(bob='{account_id}', me='{account_id}')}" for method, path, *_ in WAYS_IN}
    ours = {
        f"{method} {route.path_format}"
        for route in Litestar(ROUTES, openapi_config=None, request_class=Req).routes
        for method in route.methods - {"OPTIONS", "HEAD"}
    }
    assert ours == ways | HARMLESS | WITH_A_SECRET


def test_browsers_and_local_commands_can_create_credentials(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            bob = (await account(admin, "bob@example.org", password=None))["userId"]
            for who in (admin, local(h)):
                path, reset = f"/v1/accounts/{bob}", {"resetPassword": True}
                assert (await who.patch(path, json=reset)).json()["link"].startswith("/v1/sign-in?link=")
            there = local(h, "bob@example.org")
            assert (await there.post("/v1/tokens", json={})).status_code == 201
            assert (await there.post("/v1/password", json={"new": PASSWORD})).status_code == 200
            here = await signed_in(h, "bob@example.org")
            assert (await here.post("/v1/tokens", json={})).status_code == 201
            made = {"email": "eve@example.org", "tier": "FREE", "password": OTHER}
            assert (await local(h).post("/v1/accounts", json=made)).status_code == 201
            assert (await admin.post("/v1/password", json={"new": PASSWORD})).status_code == 200

    run(scenario)


def test_api_token_can_list_and_revoke_tokens(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada, mine = await bearer(h, admin)
            _, other = await bearer(h, admin, "other")
            await ada.add("facts", fact("f1"))
            assert (await ada.upload("notes.txt", "Words.", session=None)).status_code == 201
            assert len((await ada.call("GET", "/v1/tokens")).json()) == 2
            for made in (other, mine):
                revoked = await ada.call("DELETE", f"/v1/tokens/{made['token']['id']}")
                assert revoked.json() == {"deleted": 1}
            check_problem(await ada.call("GET", "/v1/tokens"), 401, "SIGNED_OUT")

    run(scenario)


def test_api_token_can_change_password_only_with_current_password(tmp_path):
    """A client that knows the password could also sign in, so this permission gives the token no further access."""

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            await account(admin, "ada@example.org")
            ada, _ = await bearer(h, await signed_in(h, "ada@example.org"))
            for body in ({"new": OTHER}, {"new": OTHER, "current": "not this one"}):
                check_problem(await ada.call("POST", "/v1/password", json=body), 403, "FORBIDDEN")
            known = {"new": OTHER, "current": PASSWORD}
            assert (await ada.call("POST", "/v1/password", json=known)).status_code == 200
            await signed_in(h, "ada@example.org", OTHER)

    run(scenario)


def test_administrator_token_manages_accounts_without_creating_credentials(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            root, _ = await bearer(h, await owner(h))
            made = await root.call("POST", "/v1/accounts", json={"email": "bob@example.org", "tier": "FREE"})
            assert made.status_code == 201
            path = f"/v1/accounts/{made.json()['userId']}"
            changed = await root.call("PATCH", path, json={"tier": "JIVE"})
            assert changed.json()["account"]["tier"] == "JIVE" and changed.json()["link"] is None
            assert (await root.call("DELETE", path)).json() == {"deleted": 1}

    run(scenario)
