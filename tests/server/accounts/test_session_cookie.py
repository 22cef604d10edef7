"""The browser's cookie: out of reach of scripts, and no use to other sites."""

from http.cookies import SimpleCookie

import pytest

from property.rows import session
from server.accounts.account_clients import PASSWORD, account, bearer, owner
from server.in_process_server import browser, house, refused, run

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
def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(tmp_path, base_url, settings, secure):
    async def scenario():
        async with house(tmp_path, **settings) as h:
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
                assert morsel.value not in answer.text, "the secret is in the cookie alone"
            assert names == ["vademecum", "vademecum-device"]

    run(scenario)


def test_signing_out_ends_the_cookie_on_the_server_too(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            kept = boss.cookies["vademecum"]
            assert (await boss.post("/v1/sign-out")).status_code == 200
            assert "vademecum" not in boss.cookies
            thief = browser(h)
            thief.cookies.set("vademecum", kept)
            refused(await thief.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_a_write_that_another_site_causes_is_refused_with_the_cookie_but_not_with_a_token(tmp_path, headers):
    async def scenario():
        async with house(tmp_path) as h:
            boss = await owner(h)
            ada, _ = await bearer(h, boss)
            row = {"newDocumentState": session("s1")}
            writes = [
                ("POST", "/v1/sync/sessions/0/push", {"json": [row]}),
                ("POST", "/v1/documents", {"files": {"file": ("a.txt", b"text")}}),
                ("POST", "/v1/forget", {"json": {"confirm": "forget everything"}}),
                ("POST", "/v1/tokens", {"json": {}}),
                ("POST", "/v1/password", {"json": {"new": PASSWORD}}),
                ("POST", "/v1/sign-out", {}),
                ("DELETE", "/v1/documents", {}),
                ("DELETE", "/v1/me", {"json": {"confirm": "leave for good"}}),
            ]
            for method, path, more in writes:
                refused(await boss.request(method, path, headers=headers, **more), 403, "FORBIDDEN")
            assert await ada.pull("sessions") == [] and len((await ada.call("GET", "/v1/tokens")).json()) == 1
            assert h.services.accounts.accounts[ada.id].password is None
            # the same with a token, and with the cookie from the page itself
            pushed = await ada.call("POST", "/v1/sync/sessions/0/push", json=[row], headers=headers)
            assert (pushed.status_code, pushed.json()) == (200, [])
            for own in ({}, {"Origin": "http://test"}, {"Sec-Fetch-Site": "same-origin"}):
                again = {"newDocumentState": session("s2")}
                assert (await boss.post("/v1/sync/sessions/0/push", json=[again], headers=own)).json() == []

    run(scenario)


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_another_site_can_not_sign_a_browser_in(tmp_path, headers):
    async def scenario():
        async with house(tmp_path) as h:
            await account(await owner(h), "ada@example.org")
            body = {"email": "ada@example.org", "password": PASSWORD}
            refused(await browser(h).post("/v1/sign-in", json=body, headers=headers), 403, "FORBIDDEN")

    run(scenario)


def test_behind_a_proxy_the_public_origin_is_ours(tmp_path):
    async def scenario():
        async with house(tmp_path, origin="https://docs.example.org") as h:
            boss = await owner(h)
            ours = {"Origin": "https://docs.example.org", "Cookie": f"vademecum={boss.cookies['vademecum']}"}
            assert (await browser(h).post("/v1/tokens", json={}, headers=ours)).status_code == 201
            theirs = {**ours, "Origin": "https://docs.example.com"}
            refused(await browser(h).post("/v1/tokens", json={}, headers=theirs), 403, "FORBIDDEN")

    run(scenario)


def test_a_page_by_plain_http_is_another_site_to_one_that_is_reached_by_https(tmp_path):
    """Whoever sits on the line can serve one under the same name."""

    async def scenario():
        async with house(tmp_path, origin="https://docs.example.org") as h:
            cookie = {"Cookie": f"vademecum={(await owner(h)).cookies['vademecum']}"}
            for base_url, origin in (
                ("https://test", "http://test"),
                ("http://docs.example.org", "http://docs.example.org"),
                ("http://test", "http://docs.example.org"),
            ):
                there = browser(h, base_url=base_url)
                answer = await there.post("/v1/tokens", json={}, headers={**cookie, "Origin": origin})
                refused(answer, 403, "FORBIDDEN")
            for base_url, origin in (
                ("https://test", "https://test"),
                ("http://test", "https://test"),  # by a proxy that does not say how it was reached
                ("http://docs.example.org", "https://docs.example.org"),
                ("http://127.0.0.1:8787", "http://127.0.0.1:8787"),  # on the machine itself
            ):
                here = browser(h, base_url=base_url)
                answer = await here.post("/v1/tokens", json={}, headers={**cookie, "Origin": origin})
                assert answer.status_code == 201, (base_url, origin)

    run(scenario)


def test_a_request_that_is_meant_for_another_account_is_refused(tmp_path):
    """All tabs of a browser share its cookie: one that still holds the rows of A must not push them to B."""

    async def scenario():
        async with house(tmp_path) as h:
            client = await owner(h)
            me = (await client.get("/v1/me")).json()["userId"]
            assert (await client.get("/v1/me", headers={"X-Vademecum-Account": me})).status_code == 200
            other = {"X-Vademecum-Account": "somebody-else"}
            refused(await client.get("/v1/me", headers=other), 401, "SIGNED_OUT")
            pushed = await client.post(
                "/v1/sync/sessions/0/push", json=[{"newDocumentState": session("s1")}], headers=other
            )
            refused(pushed, 401, "SIGNED_OUT")
            refused(await client.post("/v1/sign-out", headers=other), 401, "SIGNED_OUT")
            assert (await client.get("/v1/me")).status_code == 200

    run(scenario)
