"""Clients that are signed in by the first link, by a password or by an API token."""

import asyncio

from server.in_process_server import Person, browser, with_token
from wait_until import soon

PASSWORD = "correct horse battery"
OTHER = "staple of another kind"


async def owner(h, base_url="http://test"):
    """Return a browser that is signed in as owner by the link that a first server start prints."""
    client = browser(h, base_url=base_url)
    link = await h.services.account_service.ensure_owner()
    entered = await client.post("/v1/sign-in/link", data={"link": link.partition("link=")[2]})
    assert entered.status_code == 303, entered.text
    return client


async def account(admin, email, tier="JIGGA", password=PASSWORD):
    made = await admin.post("/v1/accounts", json={"email": email, "tier": tier, "password": password})
    assert made.status_code == 201, made.text
    return made.json()


async def signed_in(h, email, password=PASSWORD, base_url="http://test"):
    client = browser(h, base_url=base_url)
    answer = await client.post("/v1/sign-in", json={"email": email, "password": password})
    assert answer.status_code == 200, answer.text
    return client


async def with_browser(h, person):
    """Return the person with a signed-in browser as client. Only browsers may create tokens and first passwords."""
    client = browser(h)
    client.cookies["vademecum"] = await h.services.sign_in.create_session(
        h.services.accounts.accounts[person.id]
    )
    return Person(person.id, client)


def reconnect_browser(h, client):
    """Return a browser with the session cookie of `client`, connected to the restarted server `h`."""
    again = browser(h)
    again.cookies["vademecum"] = client.cookies["vademecum"]
    return again


async def bearer(h, client, name="laptop"):
    """Create a token for the account signed in at `client`. Return a person who uses it, and the API's response."""
    made = await client.post("/v1/tokens", json={"name": name})
    assert made.status_code == 201, made.text
    speaker = with_token(h, made.json()["secret"])
    me = (await speaker.get("/v1/me")).json()
    return Person(me["userId"], speaker), made.json()


async def open_stream(h, call):
    """Open a stream and wait until the server has registered it. Return a task that ends with the stream."""
    task = asyncio.create_task(call)
    await h.streams(1)
    return task


async def wait_until_sent(h, account_id):
    """Wait until the streams of an account have sent all queued events."""
    await soon(lambda: all(one._queue._getters for one in h.services.hub._subscriptions[account_id]))
