"""Which requests count against which limit. The loopback is exempt, except at sign-in."""

import ipaddress
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler

from vademecum.services.parts import Parts


async def limit_rate(connection: ASGIConnection[Any, Any, Any, Any], handler: BaseRouteHandler) -> None:
    """A guard: runs after authentication, before the body is read. Async, or it would be run in a thread."""
    kind = handler.opt.get("rate") or ("read" if connection.scope.get("method") == "GET" else "write")
    address = address_of(connection)
    parts: Parts = connection.app.state.parts
    if kind == "sign_in":
        parts.limiter.check_failures(address)
        parts.limiter.take(kind, address)
    elif not is_loopback(address):
        parts.limiter.take(kind, address)
        user = connection.scope.get("user")
        if user is not None:
            parts.limiter.take(kind, user.id)


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The client's address: what the server saw, or a trusted proxy said."""
    return connection.client.host if connection.client is not None else "127.0.0.1"


def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("", "localhost")
