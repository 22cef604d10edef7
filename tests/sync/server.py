"""Run the real app with an additional collection for RxDB's test suite and a few routes for the harness."""

from __future__ import annotations

import json
import os
import secrets
import threading
import time
from typing import Any

import msgspec
import uvicorn
from litestar import Request, get, post

from vademecum.app import create_app
from vademecum.cli.api_client import try_lock
from vademecum.cli.serve.serve import Server, choose_protocol, open_sockets
from vademecum.model.records.accounts import Account, Token
from vademecum.model.schema.collections import COLLECTIONS, Collection, Registry, Row
from vademecum.services.accounts.sign_in import hash_password
from vademecum.services.accounts.tokens import digest
from vademecum.services.runtime.ids import new_id
from vademecum.settings import Rates, from_environment

os.environ.setdefault("VADEMECUM_RATES", json.dumps(dict.fromkeys(Rates.__struct_fields__, 1_000_000)))
SECRET = os.environ["HARNESS_SECRET"]
T = "2026-01-01T00:00:00.000Z"


class Human(Row, kw_only=True):
    """A row of RxDB's replication suite. It has no timestamps, and its key is `passportId`."""

    id: str | msgspec.UnsetType = msgspec.UNSET
    created_at: str | msgspec.UnsetType = msgspec.UNSET
    updated_at: str | msgspec.UnsetType = msgspec.UNSET
    passport_id: str
    first_name: str
    last_name: str
    age: int

    def __post_init__(self) -> None:
        """Skip the check of the timestamps."""


HUMANS = Collection("humans", Human, primary_key="passportId")


@get("/test/alive", opt={"public": True})
async def alive() -> str:
    return "yes"


@post("/test/user", opt={"public": True}, status_code=200)
async def create_user(request: Request[Any, Any, Any]) -> dict[str, str]:
    assert request.headers["x-harness"] == SECRET
    services = request.app.state.services
    body = await request.json()
    password = await hash_password(body["password"]) if "password" in body else None
    user_id = body.get("userId") or new_id()
    account = Account(user_id, f"{secrets.token_hex(6)}@test", body.get("tier", "JIGGA"), False, password, T)
    await services.accounts.add_account(account)
    secret = secrets.token_urlsafe(32)
    await services.accounts.save_token(Token(new_id(), account.id, "api", "test", digest(secret), T))
    link = await services.sign_in.create_link(account)
    return {"userId": account.id, "token": secret, "link": link}


@post("/test/link", opt={"public": True}, status_code=200)
async def create_link(request: Request[Any, Any, Any]) -> dict[str, str]:
    """Create a sign-in link for another device of the user."""
    assert request.headers["x-harness"] == SECRET
    services = request.app.state.services
    account = services.accounts.accounts[(await request.json())["userId"]]
    return {"link": await services.sign_in.create_link(account)}


@post("/test/token", opt={"public": True}, status_code=200)
async def create_token(request: Request[Any, Any, Any]) -> dict[str, str]:
    """Create a token for another client of the user."""
    assert request.headers["x-harness"] == SECRET
    services = request.app.state.services
    account = services.accounts.accounts[(await request.json())["userId"]]
    return {"token": await services.tokens.issue(account, "api", "second", None)}


@post("/test/revoke", opt={"public": True}, status_code=200)
async def revoke_token(request: Request[Any, Any, Any]) -> dict[str, str]:
    assert request.headers["x-harness"] == SECRET
    services = request.app.state.services
    token = services.accounts.tokens[digest((await request.json())["token"])]
    await services.accounts.revoke_tokens([token])
    return {}


@post("/test/tier", opt={"public": True}, status_code=200)
async def set_tier(request: Request[Any, Any, Any]) -> dict[str, str]:
    assert request.headers["x-harness"] == SECRET
    services = request.app.state.services
    body = await request.json()
    await services.account_service.change_tier(services.accounts.accounts[body["userId"]], body["tier"])
    return {}


def exit_with_parent() -> None:
    """Exit when the harness has ended, even if it was killed and could not stop this process."""
    parent = os.getppid()
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(0)


def main() -> None:
    threading.Thread(target=exit_with_parent, daemon=True).start()
    # Short in the soak run, so that files are also rewritten during the tests.
    erase_delay_s = 1.0 if os.environ.get("SOAK") else 3600.0
    port = int(os.environ["HARNESS_PORT"])
    settings = from_environment(os.environ, port=port, erase_delay_s=erase_delay_s, heartbeat_s=1.0)
    app = create_app(settings, Registry((*COLLECTIONS, HUMANS)))
    for route in (alive, create_user, create_link, create_token, set_tier, revoke_token):
        app.register(route)
    config = uvicorn.Config(app, http=choose_protocol(), log_level="warning")
    with try_lock(settings.data):
        Server(config, app, settings, "").run(open_sockets(settings))


if __name__ == "__main__":
    main()
