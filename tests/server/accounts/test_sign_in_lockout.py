"""The delay after wrong passwords slows down attackers but does not lock out the account's user."""

import pytest

from server.accounts.account_clients import OTHER, PASSWORD
from server.in_process_server import browser, check_problem, run, serve
from vademecum.services.accounts.sign_in import DEVICES_MAX

EMAIL = "ada@example.org"
HOME, SHARED = "198.51.100.7", "203.0.113.9"


class Clock:
    def __init__(self, h):
        self.now = 0.0
        h.time_rate_limits(lambda: self.now)


async def attempt(client, password=PASSWORD, email=EMAIL):
    return await client.post("/v1/sign-in", json={"email": email, "password": password})


async def guess_from_everywhere(h, count, start=0):
    """Send `count` wrong passwords, each from a different address, and return the statuses."""
    clients = [browser(h, f"192.0.{(start + n) // 250}.{(start + n) % 250}") for n in range(count)]
    return [(await attempt(client, "not this one")).status_code for client in clients]


async def find_device_token(h, address=HOME):
    """Return a browser that the server knows, because it has signed in and out again."""
    client = browser(h, address)
    assert (await attempt(client)).status_code == 200
    assert (await client.post("/v1/sign-out")).status_code == 200
    return client


def test_known_browser_signs_in_during_an_attack(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            clock = Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            client = await find_device_token(h, SHARED)
            for minute in range(3):
                assert 429 in await guess_from_everywhere(h, 12, minute * 12)
                attacker = browser(h, SHARED)  # the address of a proxy that does not forward client addresses
                assert 429 in [(await attempt(attacker, "not this one")).status_code for _ in range(12)]
                assert (await attempt(client)).status_code == 200
                await client.post("/v1/sign-out")
                check_problem(await attempt(browser(h, HOME)), 429, "RATE_LIMITED")
                clock.now += 60

    run(scenario)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.2"])
def test_failed_sign_ins_behind_a_proxy_delay_no_other_account(tmp_path, address):
    async def scenario():
        async with serve(tmp_path, trusted_proxies="10.0.0.2") as h:
            clock = Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            for minute in range(12):
                await attempt(browser(h, address), "not this one", f"nobody{minute}@example.org")
                clock.now += 1
            assert (await attempt(browser(h, address))).status_code == 200

    run(scenario)


def test_wrong_passwords_from_many_addresses_delay_only_that_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            clock = Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            await h.services.account_service.create("bob@example.org", "JIVE", password=PASSWORD)
            tries = 0
            for second in range(1800):
                tries += (await guess_from_everywhere(h, 1, second)).count(401)
                clock.now += 1
            assert 30 <= tries <= 45, (
                "about one guess per minute must be accepted from all addresses together"
            )
            answer = await attempt(browser(h, HOME))
            assert "sign-in link" in check_problem(answer, 429, "RATE_LIMITED")["detail"]
            assert (await attempt(browser(h, HOME), email="bob@example.org")).status_code == 200
            clock.now += int(answer.headers["retry-after"])
            assert (await attempt(browser(h, HOME))).status_code == 200

    run(scenario)


def test_sign_in_delay_applies_to_passwords_only(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            Clock(h)
            account = await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            link = await h.services.sign_in.create_link(account)
            await guess_from_everywhere(h, 12)
            client = browser(h, HOME)
            for _ in range(3):
                await attempt(client, "not this one")
            entered = await client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
            assert entered.status_code == 303

    run(scenario)


def test_known_browser_of_another_account_is_delayed(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            Clock(h)
            for email in (EMAIL, "bob@example.org"):
                await h.services.account_service.create(email, "JIVE", password=PASSWORD)
            client = browser(h, HOME)
            assert (await attempt(client, email="bob@example.org")).status_code == 200
            await client.post("/v1/sign-out")
            assert 429 in await guess_from_everywhere(h, 12)
            check_problem(await attempt(client), 429, "RATE_LIMITED")

    run(scenario)


def test_known_browser_is_trusted_only_by_its_own_account(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            Clock(h)
            for email in (EMAIL, "bob@example.org"):
                await h.services.account_service.create(email, "JIVE", password=PASSWORD)
            client = await find_device_token(h)
            statuses = [(await attempt(client, "not it", "bob@example.org")).status_code for _ in range(12)]
            assert statuses[:3] == [401] * 3 and statuses.count(429) == 9
            device = {"Cookie": f"vademecum={client.cookies['vademecum-device']}"}
            check_problem(await browser(h).get("/v1/me", headers=device), 401, "SIGNED_OUT")

    run(scenario)


def test_known_browser_is_forgotten_after_ten_wrong_passwords(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            clock = Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            client = await find_device_token(h)
            wrong = 0
            while wrong < 10:
                wrong += (await attempt(client, "not this one")).status_code == 401
                clock.now += 60
            assert devices(h) == []
            await guess_from_everywhere(h, 12)
            check_problem(await attempt(client), 429, "RATE_LIMITED")

    run(scenario)


def devices(h):
    return [token for token in h.services.accounts.tokens.values() if token.kind == "device"]


@pytest.mark.parametrize("how", ["change", "reset"])
def test_password_change_forgets_other_known_browsers(tmp_path, how):
    async def scenario():
        async with serve(tmp_path) as h:
            Clock(h)
            account = await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            thief = await find_device_token(h)
            here = browser(h, HOME)
            assert (await attempt(here)).status_code == 200
            if how == "change":
                body = {"new": OTHER, "current": PASSWORD}
                assert (await here.post("/v1/password", json=body)).status_code == 200
            else:
                link = await h.services.account_service.reset_password(account)
                await here.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
                assert (await here.post("/v1/password", json={"new": OTHER})).status_code == 200
            assert len(devices(h)) == 1
            await guess_from_everywhere(h, 12)
            check_problem(await attempt(thief, OTHER), 429, "RATE_LIMITED")
            assert (await attempt(here, OTHER)).status_code == 200

    run(scenario)


def test_newest_known_browsers_survive_a_server_restart(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            Clock(h)
            await h.services.account_service.create(EMAIL, "JIVE", password=PASSWORD)
            for number in range(DEVICES_MAX + 2):
                kept = (await find_device_token(h, f"198.51.100.{number}")).cookies["vademecum-device"]
            assert len(devices(h)) == DEVICES_MAX
        async with serve(tmp_path) as h:
            Clock(h)
            client = browser(h, HOME)
            client.cookies["vademecum-device"] = kept
            await guess_from_everywhere(h, 12)
            answer = await attempt(client)
            assert answer.status_code == 200 and "vademecum-device" not in answer.headers["set-cookie"]

    run(scenario)
