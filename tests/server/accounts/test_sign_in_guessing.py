"""Clients that are not signed in can neither guess many passwords nor exhaust the server's memory."""

import unicodedata

import pytest

from server.in_process_server import browser, check_problem, run, serve

EMAIL = "josé@example.org"
PASSWORD = "correct horse battery"
FAR = "203.0.113.9"


def stopped_clock(h):
    h.time_rate_limits(lambda: 0.0)


async def attempt(h, address, email=EMAIL, password="not this one"):
    return await browser(h, address).post("/v1/sign-in", json={"email": email, "password": password})


async def with_cookie(h, account):
    """Return a session cookie of the account, for a test in which a thief uses it."""
    return {"vademecum": await h.services.sign_in.create_session(account)}


async def change(h, address, cookies, current="not this one"):
    client = browser(h, address)
    client.cookies.update(cookies)
    return await client.post("/v1/password", json={"current": current, "new": "another long one"})


def test_rate_limiter_does_not_store_submitted_emails(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            email = "e" * 300 + "@example.org"
            check_problem(await attempt(h, FAR, email), 401, "SIGNED_OUT")
            kept = [who for kind, who in h.services.rate_limiter._buckets if kind == "sign_in" and who != FAR]
            assert len(kept) == 1, "the limiter must have one entry for the account"
            assert email not in kept[0] and len(kept[0]) < 100

    run(scenario)


def test_oversized_credentials_count_only_toward_limit_of_address(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            check_problem(await attempt(h, FAR, email="e" * 321), 400, "BAD_REQUEST")
            check_problem(await attempt(h, FAR, password="p" * 1001), 400, "BAD_REQUEST")
            assert [who for _, who in h.services.rate_limiter._buckets] == [FAR]

    run(scenario)


@pytest.mark.parametrize(
    ("address", "statuses"),
    [
        ("2a00:1450:4001:82f::{}", {401, 429}),  # one client controls the whole network
        ("2a00:1450:4001:{}::1", {401}),
        ("fe80::{}", {401}),  # link-local addresses belong to different clients
        ("fd00:1::{}", {401}),
        ("::ffff:203.0.113.{}", {401}),
        ("203.0.113.{}", {401}),
    ],
)
def test_changing_addresses_does_not_raise_a_clients_sign_in_limit(tmp_path, address, statuses):
    async def scenario():
        async with serve(tmp_path) as h:
            stopped_clock(h)
            answers = [await attempt(h, address.format(n), f"{n}@example.org") for n in range(1, 20)]
            assert {answer.status_code for answer in answers} == statuses
            if 429 in statuses:
                assert [answer.status_code for answer in answers].index(429) <= 10

    run(scenario)


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/sign-in", b'{"email": "a@b", "password": "x"}', "application/json"),
        ("/v1/sign-in/link", b"link=x", "application/x-www-form-urlencoded"),
    ],
)
def test_large_unauthenticated_body_is_not_read(tmp_path, path, body, kind):
    async def scenario():
        async with serve(tmp_path) as h:

            async def in_portions():  # chunked, without Content-Length
                for portion in (body, *[b" " * 2**10] * 128):
                    yield portion

            headers = {"Content-Type": kind}
            for content in (body + b" " * 2**17, in_portions()):
                answer = await browser(h).post(path, content=content, headers=headers)
                check_problem(answer, 413, "TOO_LARGE")
            check_problem(await browser(h).post(path, content=body, headers=headers), 401, "SIGNED_OUT")

    run(scenario)


def test_sign_in_limit_counts_all_spellings_of_an_email_together(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            stopped_clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            spellings = [unicodedata.normalize(form, EMAIL) for form in ("NFC", "NFD")]
            spellings += [EMAIL.upper(), f" {EMAIL} "]
            for number in range(6):
                check_problem(await attempt(h, f"203.0.{number}.9", spellings[number % 4]), 401, "SIGNED_OUT")
            for number, email in enumerate(spellings):
                check_problem(await attempt(h, f"203.1.{number}.9", email), 429, "RATE_LIMITED")

    run(scenario)


def test_password_checks_of_password_changes_are_limited_per_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            stopped_clock(h)
            cookies = await with_cookie(
                h, await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            )
            for number in range(6):
                check_problem(await change(h, f"203.0.{number}.9", cookies), 403, "FORBIDDEN")
            check_problem(await change(h, "198.51.100.7", cookies, PASSWORD), 429, "RATE_LIMITED")
            # Password changes and sign-ins count toward one limit.
            check_problem(await attempt(h, "198.51.100.8"), 429, "RATE_LIMITED")

    run(scenario)


def test_failed_password_changes_delay_their_address(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            seconds = [0.0]
            h.time_rate_limits(lambda: seconds[0])
            cookies = await with_cookie(
                h, await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            )
            for _ in range(3):
                check_problem(await change(h, FAR, cookies), 403, "FORBIDDEN")
            answer = await change(h, FAR, cookies, PASSWORD)
            check_problem(answer, 429, "RATE_LIMITED")
            seconds[0] += int(answer.headers["retry-after"])
            assert (await change(h, FAR, cookies, PASSWORD)).status_code == 200

    run(scenario)
