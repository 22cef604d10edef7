"""Scripts cannot read the session cookie, and other sites cannot use it."""

from http.cookies import SimpleCookie

import pytest

from property.rows import session
from server.accounts.account_clients import PASSWORD, account, bearer, owner
from server.in_process_server import browser, check_problem, run, serve

FOREIGN = [
    {"Origin": "https://evil.example"},
    {"Origin": "null"},
    {"Origin": "http://test:81"},
    {"Origin": "http://test.evil.example"},
    {"Origin": "http://[x"},
    {"Origin": "[::1"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


@pytest.mark.parametrize(
    ("base_url", "settings", "secure"),
    [
        ("http://test", {}, False),
        ("https://test", {}, True),
        ("http://test", {"origin": "https://docs.example.org"}, True),
    ],
)
def test_session_cookie_is_http_only_and_same_site(tmp_path, base_url, settings, secure):
    async def scenario():
        async with serve(tmp_path, **settings) as h:
            await account(await owner(h, base_url="https://test"), "ada@example.org")
            client = browser(h, base_url=base_url)
            body = {"email": "ada@example.org", "password": PASSWORD}
            answer = await client.post("/v1/sign-in", json=body)
            names = []
            for header in answer.headers.get_list("set-cookie"):
                (morsel,) = SimpleCookie(header).values()
                names.append(morsel.key)
                assert morsel["httponly"] is True and morsel["samesite"].lower() in ("lax", "strict")
                assert bool(morsel["secure"]) is secure
                assert morsel.value not in answer.text, (
                    "the response body must not contain the cookie's secret"
                )
            assert names == ["vademecum", "vademecum-device"]

    run(scenario)


def test_sign_out_revokes_the_cookie_on_the_server(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            kept = admin.cookies["vademecum"]
            assert (await admin.post("/v1/sign-out")).status_code == 200
            assert "vademecum" not in admin.cookies
            thief = browser(h)
            thief.cookies.set("vademecum", kept)
            check_problem(await thief.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_cross_site_write_is_rejected_unless_token_authenticated(tmp_path, headers):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada, _ = await bearer(h, admin)
            row = {"newDocumentState": session("s1")}
            writes = [
                ("POST", "/v1/sync/sessions/1/push", {"json": [row]}),
                ("POST", "/v1/documents", {"files": {"file": ("a.txt", b"text")}}),
                ("POST", "/v1/forget", {"json": {"confirm": "forget everything"}}),
                ("POST", "/v1/tokens", {"json": {}}),
                ("POST", "/v1/password", {"json": {"new": PASSWORD}}),
                ("POST", "/v1/sign-out", {}),
                ("DELETE", "/v1/documents", {}),
                ("DELETE", "/v1/me", {"json": {"confirm": "leave for good"}}),
            ]
            for method, path, more in writes:
                check_problem(await admin.request(method, path, headers=headers, **more), 403, "FORBIDDEN")
            assert await ada.pull("sessions") == [] and len((await ada.call("GET", "/v1/tokens")).json()) == 1
            assert h.services.accounts.accounts[ada.id].password is None
            # The same request succeeds with a token, or with the cookie from the app's own origin.
            pushed = await ada.call("POST", "/v1/sync/sessions/1/push", json=[row], headers=headers)
            assert (pushed.status_code, pushed.json()) == (200, [])
            for own in ({}, {"Origin": "http://test"}, {"Sec-Fetch-Site": "same-origin"}):
                again = {"newDocumentState": session("s2")}
                assert (await admin.post("/v1/sync/sessions/1/push", json=[again], headers=own)).json() == []

    run(scenario)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_cross_site_sign_in_is_rejected(tmp_path, headers):
    async def scenario():
        async with serve(tmp_path) as h:
            await account(await owner(h), "ada@example.org")
            body = {"email": "ada@example.org", "password": PASSWORD}
            check_problem(await browser(h).post("/v1/sign-in", json=body, headers=headers), 403, "FORBIDDEN")

    run(scenario)


def test_public_origin_is_accepted_behind_a_proxy(tmp_path):
    async def scenario():
        async with serve(tmp_path, origin="https://docs.example.org") as h:
            admin = await owner(h)
            ours = {"Origin": "https://docs.example.org", "Cookie": f"vademecum={admin.cookies['vademecum']}"}
            assert (await browser(h).post("/v1/tokens", json={}, headers=ours)).status_code == 201
            theirs = {**ours, "Origin": "https://docs.example.com"}
            check_problem(await browser(h).post("/v1/tokens", json={}, headers=theirs), 403, "FORBIDDEN")

    run(scenario)


def test_http_origin_is_cross_site_for_https_server(tmp_path):
    """An attacker on the network can serve a plain HTTP page under the same host name."""

    async def scenario():
        async with serve(tmp_path, origin="https://docs.example.org") as h:
            cookie = {"Cookie": f"vademecum={(await owner(h)).cookies['vademecum']}"}
            for base_url, origin in (
                ("https://test", "http://test"),
                ("http://docs.example.org", "http://docs.example.org"),
                ("http://test", "http://docs.example.org"),
            ):
                there = browser(h, base_url=base_url)
                answer = await there.post("/v1/tokens", json={}, headers={**cookie, "Origin": origin})
                check_problem(answer, 403, "FORBIDDEN")
            for base_url, origin in (
                ("https://test", "https://test"),
                ("http://test", "https://test"),  # behind a proxy that does not forward the scheme
                ("http://docs.example.org", "https://docs.example.org"),
                ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),  # on the server's machine
            ):
                here = browser(h, base_url=base_url)
                answer = await here.post("/v1/tokens", json={}, headers={**cookie, "Origin": origin})
                assert answer.status_code == 201, (base_url, origin)

    run(scenario)


def test_request_for_another_account_is_rejected(tmp_path):
    """All tabs of a browser share the cookie, so a tab can still contain rows of an account that signed out.

    Such a tab must not push its rows to the account that has signed in since.
    """

    async def scenario():
        async with serve(tmp_path) as h:
            client = await owner(h)
            me = (await client.get("/v1/me")).json()["userId"]
            assert (await client.get("/v1/me", headers={"X-Vademecum-Account": me})).status_code == 200
            other = {"X-Vademecum-Account": "somebody-else"}
            check_problem(await client.get("/v1/me", headers=other), 401, "SIGNED_OUT")
            pushed = await client.post(
                "/v1/sync/sessions/1/push", json=[{"newDocumentState": session("s1")}], headers=other
            )
            check_problem(pushed, 401, "SIGNED_OUT")
            check_problem(await client.post("/v1/sign-out", headers=other), 401, "SIGNED_OUT")
            assert (await client.get("/v1/me")).status_code == 200

    run(scenario)
