"""Apply rate limits to requests. No address is exempt, because requests of a local proxy come from the loopback address.

Two kinds of requests are exempt: those with the credential of local commands, and those that the server makes for an
agent, because the agent's own request has already been counted.
"""

import ipaddress
from functools import lru_cache
from typing import Any

from litestar.connection import ASGIConnection

from vademecum.model.records.accounts import Token
from vademecum.services.accounts import local_auth
from vademecum.services.runtime.composition import Services

SHARED_ADDRESS_FACTOR = 20  # multiplies the limit of an address that many people may share
ALREADY_COUNTED = "vademecum.counted"  # scope key of a request that the server makes for an agent
DEVICE_COOKIE = "vademecum-device"


def limit_address(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Apply the limit per client address. This runs before authentication, so that guessing secrets is limited too."""
    if _is_exempt(services, connection):
        return
    kind = _kind(connection)
    factor = SHARED_ADDRESS_FACTOR if is_shared(services, connection) else 1
    if kind == "sign_in":  # a browser that has signed in before has its own limit
        device = find_device_token(services, connection)
        if device is not None:
            services.rate_limiter.take(kind, f"device {device.id}")
            return
    services.rate_limiter.take(kind, rate_limit_key(connection), factor)


def limit_account(
    services: Services, connection: ASGIConnection[Any, Any, Any, Any], account_id: str
) -> None:
    """Apply the limit per account, which may be used from many addresses. This runs before the body is read."""
    kind = _kind(connection)
    if kind != "sign_in" and not _is_exempt(services, connection):
        services.rate_limiter.take(kind, account_id)


def _is_exempt(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    return ALREADY_COUNTED in connection.scope or has_local_credential(services, connection)


def has_local_credential(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether the request has the credential of commands on the server's machine."""
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    return (
        scheme.lower() == "local"
        and is_local_request(connection)
        and local_auth.matches(services.local_secret, secret)
    )


def _kind(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    kind: str | None = connection.route_handler.opt.get("rate")
    return kind or ("read" if connection.scope.get("method") == "GET" else "write")


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the client's address, as the server or a trusted proxy saw it."""
    return connection.client.host if connection.client is not None else "127.0.0.1"


def is_shared(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether many people may have this address, because a proxy does not forward theirs."""
    address = address_of(connection)
    return is_loopback(address) or services.settings.is_proxy(address)


def find_device_token(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> Token | None:
    """Return the device token of a browser that has signed in before, or None. The token does not authenticate."""
    cookie = connection.cookies.get(DEVICE_COOKIE, "")
    return services.tokens.find(cookie, "device") if cookie else None


def rate_limit_key(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Return the client's address or, for IPv6, its /64 network. Requests with the same key share a limit."""
    return _network(address_of(connection))


@lru_cache(maxsize=1024)
def _network(address: str) -> str:
    """Return the /64 network of a public IPv6 address, because a client can use all 2**64 addresses of its network.

    Return any other address unchanged. In a local network, for example, all clients share one /64 network.
    """
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return address
    if parsed.version == 4 or not parsed.is_global or parsed.ipv4_mapped is not None:
        return address
    return str(ipaddress.ip_network((int(parsed) >> 64 << 64, 64)))


def is_local_request(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether the client is on the server's machine: it has the loopback address or the server's own address."""
    address = address_of(connection)
    server = connection.scope.get("server")
    return is_loopback(address) or (server is not None and address == server[0])


@lru_cache(maxsize=1024)
def is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address in ("", "localhost")
