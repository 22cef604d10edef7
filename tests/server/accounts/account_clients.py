"""How people come in: by the first link, with a password, with a token."""

import asyncio

from server.in_process_server import Person, browser, with_token
from wait_until import soon

PASSWORD = "correct horse battery"
OTHER = "staple of another kind"


async def owner(h, base_url="http://test"):
    """The owner's browser, come in by the link that the first start prints."""
    client = browser(h, base_url=base_url)
    link = await h.services.account_service.ensure_owner()
    entered = await client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
    assert entered.status_code == 303, entered.text
    return client


async def account(boss, email, tier="JIGGA", password=PASSWORD):
    made = await boss.post("/v1/accounts", json={"email": email, "tier": tier, "password": password})
    assert made.status_code == 201, made.text
    return made.json()


async def signed_in(h, email, password=PASSWORD, base_url="http://test"):
    client = browser(h, base_url=base_url)
    answer = await client.post("/v1/sign-in", json={"email": email, "password": password})
    assert answer.status_code == 200, answer.text
    return client


async def at_browser(h, person):
    """The person, signed in at a browser: there tokens and first passwords are made."""
    client = browser(h)
    client.cookies["vademecum"] = await h.services.sign_in.create_session(
        h.services.accounts.accounts[person.id]
    )
    return Person(person.id, client)


def client_like(h, client):
    """The same browser, after a restart of the server."""
    again = browser(h)
    again.cookies["vademecum"] = client.cookies["vademecum"]
    return again


async def bearer(h, client, name="laptop"):
    """A person who speaks with a new token of the account signed in at `client`."""
    made = await client.post("/v1/tokens", json={"name": name})
    assert made.status_code == 201, made.text
    speaker = with_token(h, made.json()["secret"])
    me = (await speaker.get("/v1/me")).json()
    return Person(me["userId"], speaker), made.json()


async def streaming(h, call):
    """Open a stream; returns when it is registered, with the task that ends when the stream does."""
    task = asyncio.create_task(call)
    await h.streams(1)
    return task


async def passed_on(h, account_id):
    """Wait until the streams of an account have sent all that they had, and wait for more."""
    await soon(lambda: all(one._queue._getters for one in h.services.hub._subscriptions[account_id]))
