"""Which requests count against which limit. The loopback is exempt, except at sign-in."""

import ipaddress
from functools import lru_cache
from typing import Any

from litestar.connection import ASGIConnection

from vademecum.engines.duckdb.accounts import Token
from vademecum.services.parts import Parts
from vademecum.services.tokens import find_token

DEVICE_COOKIE = "vademecum-device"


def limit_address(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Before it is known who asks, so that guessing secrets is bounded too."""
    kind, address = _kind(connection), address_of(connection)
    if kind == "sign_in":  # a known browser passes, also from an address that others use up
        device = known_browser(parts, connection)
        parts.limiter.take(kind, guesser_of(connection) if device is None else f"device {device.id}")
    elif not is_loopback(address):
        parts.limiter.take(kind, address)


def limit_account(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any], account_id: str) -> None:
    """The same account from many addresses. Before the body is read."""
    kind = _kind(connection)
    if kind != "sign_in" and not is_loopback(address_of(connection)):
        parts.limiter.take(kind, account_id)


def _kind(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    named: str | None = connection.route_handler.opt.get("rate")
    return named or ("read" if connection.scope.get("method") == "GET" else "write")


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The client's address: what the server saw, or a trusted proxy said."""
    return connection.client.host if connection.client is not None else "127.0.0.1"


def known_browser(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any]) -> Token | None:
    """Return the device token of a browser that has signed in before. It lets nobody in."""
    cookie = connection.cookies.get(DEVICE_COOKIE, "")
    return find_token(parts, cookie, "device") if cookie else None


def guesser_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Whose guesses of a password count together."""
    return _network(address_of(connection))


@lru_cache(maxsize=1024)
def _network(address: str) -> str:
    """Of IPv6 a caller has 2**64 addresses, and may come by another each time: that is one guesser. Inside a house, where
    all have the same such part, each address is one."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address
    if found.version == 4 or not found.is_global or found.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((int(found) >> 64 << 64, 64)))


def is_here(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Does the caller sit on the server's own machine: on the loopback, or at the very address that is served?"""
    address = address_of(connection)
    server = connection.scope.get("server")
    return is_loopback(address) or (server is not None and address == server[0])


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("", "localhost")
