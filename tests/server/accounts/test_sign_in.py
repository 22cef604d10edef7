"""Sign-in by single-use links and passwords, with protection against guessing and account enumeration."""

import asyncio
import base64
import hashlib
from datetime import datetime, timedelta

import pytest
from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError

from server.in_process_server import browser, check_problem, run, serve
from vademecum.settings import Rates

EMAIL = "ada@example.org"
PASSWORD = "correct horse battery"


async def attempt(client, email=EMAIL, password=PASSWORD):
    return await client.post("/v1/sign-in", json={"email": email, "password": password})


async def follow(client, link):
    return await client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})


def later(moment, minutes):
    moved = datetime.fromisoformat(moment) + timedelta(minutes=minutes)
    return moved.strftime("%Y-%m-%dT%H:%M:%S.000Z")


class Clock:
    """A clock that only the test advances."""

    def __init__(self, h):
        self.now = 1000.0
        h.time_rate_limits(lambda: self.now)

    def wait(self, seconds):
        self.now += float(seconds)


# --- links --------------------------------------------------------------------------------------------------------


def test_sign_in_link_works_once(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            link = await h.services.account_service.ensure_owner()
            first, second = browser(h), browser(h)
            # A GET must not consume the link, because mail clients open links for previews.
            for _ in range(2):
                page = await first.get(link)
                assert page.status_code == 200 and "set-cookie" not in page.headers
            entered = await follow(first, link)
            assert (entered.status_code, entered.headers["location"]) == (303, "/")
            assert (await first.get("/v1/me")).json()["admin"] is True
            check_problem(await follow(second, link), 401, "SIGNED_OUT")
            check_problem(await second.get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_sign_in_link_works_once_under_concurrency(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            link = await h.services.account_service.ensure_owner()
            answers = await asyncio.gather(*(follow(browser(h), link) for _ in range(5)))
            assert sorted(a.status_code for a in answers) == [303, 401, 401, 401, 401]

    run(scenario)


def test_sign_in_link_expires_after_fifteen_minutes(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            server_clock = h.services.clock
            for minutes, status in ((14, 303), (16, 401)):
                link = await h.services.account_service.ensure_owner()
                h.set_clock(lambda minutes=minutes: later(server_clock(), minutes))
                client = browser(h)
                assert (await follow(client, link)).status_code == status
                await client.post("/v1/sign-out")
                h.set_clock(server_clock)

    run(scenario)


def test_browser_session_expires_after_ninety_idle_days(tmp_path):
    """The server expires the session when the Max-Age of its cookie ends."""

    async def scenario():
        async with serve(tmp_path) as h:
            server_clock = h.services.clock
            client = browser(h)
            entered = await follow(client, await h.services.account_service.ensure_owner())
            days = int(entered.headers["set-cookie"].partition("Max-Age=")[2].partition(";")[0]) / 86_400
            headers = {"Cookie": f"vademecum={client.cookies['vademecum']}"}
            for day, status in ((days + 1, 401), (days - 1, 200)):
                h.set_clock(lambda day=day: later(server_clock(), day * 1440))
                assert (await browser(h).get("/v1/me", headers=headers)).status_code == status

    run(scenario)


def test_sign_in_link_is_not_accepted_as_token_or_cookie(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            secret = (await h.services.account_service.ensure_owner()).partition("link=")[2]
            client = browser(h)
            bearer = {"Authorization": f"Bearer {secret}"}
            check_problem(await client.get("/v1/me", headers=bearer), 401, "SIGNED_OUT")
            cookie = {"Cookie": f"vademecum={secret}"}
            check_problem(await client.get("/v1/me", headers=cookie), 401, "SIGNED_OUT")

    run(scenario)


def test_sign_in_page_escapes_the_sign_in_link(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            page = await browser(h).get("/v1/sign-in", params={"link": '"><script>alert(1)</script>'})
            assert "<script" not in page.text and page.headers["referrer-policy"] == "same-origin"
            assert page.headers["cache-control"] == "no-store"

    run(scenario)


def policy(page):
    return page.headers["content-security-policy"]


HTML = {"Accept": "text/html,application/xhtml+xml"}


def test_sign_in_page_names_the_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            link = await h.services.account_service.ensure_owner()
            page = await browser(h).get(link)
            assert "as <b>owner@localhost</b> (administrator). It works once." in page.text

    run(scenario)


def test_invalid_link_page_explains_what_to_do(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            server_clock = h.services.clock
            used, old = (
                await h.services.account_service.ensure_owner(),
                await h.services.account_service.ensure_owner(),
            )
            assert (await follow(browser(h), used)).status_code == 303
            for link, minutes in ((used, 0), (old, 16), ("/v1/sign-in?link=never-was", 0)):
                h.set_clock(lambda minutes=minutes: later(server_clock(), minutes))
                data = {"link": link.partition("link=")[2]}
                shown = await browser(h).get(link, headers=HTML)
                sent = await browser(h).post("/v1/sign-in/link", data=data, headers=HTML)
                for page, status in ((shown, 200), (sent, 401)):
                    assert page.status_code == status
                    assert page.headers["content-type"] == "text/html; charset=utf-8"
                    assert "already used, or is older than 15 minutes" in page.text
                    assert "vademecum user link" in page.text and "<button" not in page.text
                    # The link leads users who are signed in already, and only navigated back, to the app.
                    assert '<a href="/">' in page.text
            missing = await browser(h).get("/v1/sign-in", headers=HTML)
            assert "vademecum user link" in missing.text and "<button" not in missing.text

    run(scenario)


def test_csp_of_sign_in_pages_allows_only_their_inline_style(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            for path in ("/v1/sign-in", await h.services.account_service.ensure_owner()):
                page = await browser(h).get(path)
                style = page.text.partition("<style>")[2].partition("</style>")[0].encode()
                digest = base64.b64encode(hashlib.sha256(style).digest()).decode()
                assert style and f"style-src 'sha256-{digest}'" in policy(page)
                assert "unsafe-inline" not in policy(page) and "<script" not in page.text
                assert page.headers["cache-control"] == "no-store"

    run(scenario)


def test_sign_in_page_escapes_the_account_name(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            await h.services.account_service.create("<i>ada&co@example.org", "FREE")
            account = h.services.accounts.by_email("<i>ada&co@example.org")
            page = await browser(h).get(await h.services.sign_in.create_link(account))
            assert "<b>&lt;i&gt;ada&amp;co@example.org</b>" in page.text

    run(scenario)


def test_cross_site_sign_out_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            client = browser(h)
            await follow(client, await h.services.account_service.ensure_owner())
            foreign = {"Origin": "https://elsewhere.example"}
            check_problem(await client.post("/v1/sign-out", headers=foreign), 403, "FORBIDDEN")
            assert (await client.get("/v1/me")).status_code == 200

    run(scenario)


# --- passwords ----------------------------------------------------------------------------------------------------


def test_failed_sign_ins_are_indistinguishable(tmp_path, monkeypatch):
    """All failures have the same status, headers and body, and cost the time of one failed argon2 comparison."""
    verified = []
    verify = PasswordHasher.verify

    def counting(self, stored, password):
        # Not InvalidHashError, which is raised before any hashing.
        with pytest.raises(VerifyMismatchError) as refusal:
            verify(self, stored, password)
        verified.append(stored)
        raise refusal.value

    monkeypatch.setattr(PasswordHasher, "verify", counting)

    async def scenario():
        async with serve(tmp_path) as h:
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            await h.services.account_service.create("link@example.org", "JIVE")
            answers = []
            for email, password in (
                (EMAIL, "not this one at all"),
                (EMAIL, ""),
                ("nobody@example.org", PASSWORD),
                ("link@example.org", PASSWORD),
                ("link@example.org", ""),
                ("not an address", PASSWORD),
            ):
                h.time_rate_limits(lambda: 0.0)
                before = len(verified)
                answer = await attempt(browser(h), email, password)
                assert len(verified) == before + 1, (
                    f"the sign-in of {email} failed without a password comparison"
                )
                check_problem(answer, 401, "SIGNED_OUT")
                answers.append((answer.content, sorted(answer.headers.items())))
            assert all(answer == answers[0] for answer in answers)
            # The hashes for known and unknown accounts have the same parameters, so comparing takes the same time.
            assert len({stored.rsplit("$", 2)[0] for stored in verified}) == 1

    run(scenario)


def test_sign_in_ignores_case_of_email_but_not_of_password(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            await h.services.account_service.create("Ada@Example.org", "JIVE", password=PASSWORD)
            for email in ("ada@example.org", "ADA@EXAMPLE.ORG", " ada@example.org"):
                assert (await attempt(browser(h), email)).status_code == 200
            for password in (PASSWORD.upper(), PASSWORD + " ", PASSWORD[:-1]):
                h.time_rate_limits(lambda: 0.0)
                check_problem(await attempt(browser(h), EMAIL, password), 401, "SIGNED_OUT")

    run(scenario)


BODIES = (
    b"", b"[]", b"null", b'"x"', b"{}", b'{"email": "a@b"}', b'{"email": 1, "password": 2}', b"{", b"\xff\xfe",
    b'{"email": "a@b", "password": null}', b'{"email": "a@b", "password": "x", "admin": true}',
)  # fmt: skip


def test_malformed_credentials_are_rejected_without_server_error(tmp_path):
    async def scenario():
        async with serve(tmp_path, rates=Rates(sign_in=100)) as h:
            headers = {"Content-Type": "application/json"}
            for body in BODIES:
                answer = await browser(h).post("/v1/sign-in", content=body, headers=headers)
                check_problem(answer, 400, "BAD_REQUEST")
            half = b'{"email": "a\\ud800@example.org", "password": "\\ud800 and more of it"}'
            strange = await browser(h).post("/v1/sign-in", content=half, headers=headers)
            assert strange.status_code in (400, 401), strange.text

    run(scenario)


# --- guessing -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("address", "times"), [("203.0.113.9", 10), ("127.0.0.1", 200), ("::1", 200)])
def test_sign_in_limit_is_twenty_times_higher_for_shared_addresses(tmp_path, address, times):
    async def scenario():
        async with serve(tmp_path, rates=Rates()) as h:
            clock = Clock(h)
            client = browser(h, address)
            for _ in range(times):
                check_problem(await follow(client, "?link=nonsense"), 401, "SIGNED_OUT")
            link = await h.services.account_service.ensure_owner()
            answer = await follow(client, link)
            check_problem(answer, 429, "RATE_LIMITED")
            wait = int(answer.headers["retry-after"])
            assert 1 <= wait <= 60
            check_problem(await client.get(link), 429, "RATE_LIMITED")
            assert (await follow(browser(h, "198.51.100.7"), link)).status_code == 303, (
                "clients at other addresses must be able to sign in"
            )
            clock.wait(wait)
            check_problem(await follow(client, "?link=nonsense"), 401, "SIGNED_OUT")

    run(scenario)


def test_password_attempts_are_limited_to_ten_per_minute(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            clock = Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            client = browser(h, "203.0.113.9")
            guesses, waits = 0, []
            while clock.now < 1000 + 180:
                answer = await attempt(client, password="not this one")
                if answer.status_code == 429:
                    waits.append(int(answer.headers["retry-after"]))
                    assert waits[-1] >= 1
                    clock.wait(waits[-1])
                else:
                    check_problem(answer, 401, "SIGNED_OUT")
                    guesses += 1
            assert 3 <= guesses <= 10, "the growing delay must limit the guesses"
            assert waits == sorted(waits) and waits[-1] > 4 * waits[0] and max(waits) <= 60

    run(scenario)


def test_sign_in_delay_also_applies_to_the_correct_password(tmp_path):
    """Otherwise the absence of a delay would reveal the correct password."""

    async def scenario():
        async with serve(tmp_path) as h:
            clock = Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            client = browser(h, "203.0.113.9")
            for _ in range(3):
                check_problem(await attempt(client, password="not this one"), 401, "SIGNED_OUT")
            answer = await attempt(client)
            check_problem(answer, 429, "RATE_LIMITED")
            assert (await attempt(browser(h, "198.51.100.7"))).status_code == 200, (
                "clients at other addresses must not be delayed"
            )
            clock.wait(answer.headers["retry-after"])
            assert (await attempt(client)).status_code == 200
            clock.wait(60)
            check_problem(await attempt(client, password="not this one"), 401, "SIGNED_OUT")
            assert (await attempt(client)).status_code == 200, (
                "a successful sign-in must reset the count of failures"
            )

    run(scenario)


def test_password_changes_count_toward_the_sign_in_limit(tmp_path):
    """A stolen cookie must not allow unlimited guesses of the password."""

    async def scenario():
        async with serve(tmp_path) as h:
            Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            client = browser(h, "203.0.113.9")
            assert (await attempt(client)).status_code == 200
            statuses = []
            for _ in range(12):
                answer = await client.post(
                    "/v1/password", json={"current": "not this one", "new": "something new"}
                )
                statuses.append(answer.status_code)
            assert 200 not in statuses and statuses.count(429) >= 3

    run(scenario)


def test_sign_in_rate_limit_is_configurable(tmp_path):
    async def scenario():
        async with serve(tmp_path, rates=Rates(sign_in=2)) as h:
            Clock(h)
            client = browser(h, "203.0.113.9")
            answers = [await follow(client, "?link=nonsense") for _ in range(3)]
            assert [a.status_code for a in answers] == [401, 401, 429]
            check_problem(answers[2], 429, "RATE_LIMITED")

    run(scenario)
