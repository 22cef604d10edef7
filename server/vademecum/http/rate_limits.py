"""Which requests count against which limit. No address is exempt: a proxy on this machine looks like the loopback.

Only the command line is, by its local credential, and what the server asks of itself for an agent, whose request has been
counted."""

import ipaddress
from functools import lru_cache
from typing import Any

from litestar.connection import ASGIConnection

from vademecum.model.records.accounts import Token
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.tokens import find_token
from vademecum.services.runtime.container import Services

SHARED_ADDRESS_FACTOR = 20  # times the budget of one address, for one that many people may share
ALREADY_COUNTED = "vademecum.counted"  # in the scope of a request that the server makes of itself
DEVICE_COOKIE = "vademecum-device"


def limit_address(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Before it is known who asks, so that guessing secrets is bounded too."""
    if _is_exempt(services, connection):
        return
    kind = _kind(connection)
    factor = SHARED_ADDRESS_FACTOR if is_shared(services, connection) else 1
    if kind == "sign_in":  # a known browser passes, also from an address that others use up
        device = find_device_token(services, connection)
        if device is None:
            services.limiter.take(kind, rate_limit_key(connection), factor)
        else:
            services.limiter.take(kind, f"device {device.id}")
    else:
        services.limiter.take(kind, rate_limit_key(connection), factor)


def limit_account(
    services: Services, connection: ASGIConnection[Any, Any, Any, Any], account_id: str
) -> None:
    """The same account from many addresses. Before the body is read."""
    kind = _kind(connection)
    if kind != "sign_in" and not _is_exempt(services, connection):
        services.limiter.take(kind, account_id)


def _is_exempt(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    return ALREADY_COUNTED in connection.scope or has_local_credential(services, connection)


def has_local_credential(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether a command of this machine asks."""
    scheme, _, secret = connection.headers.get("authorization", "").partition(" ")
    return (
        scheme.lower() == "local"
        and is_local_request(connection)
        and local_auth.opens(services.local_secret, secret)
    )


def _kind(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    named: str | None = connection.route_handler.opt.get("rate")
    return named or ("read" if connection.scope.get("method") == "GET" else "write")


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """The client's address: what the server saw, or a trusted proxy said."""
    return connection.client.host if connection.client is not None else "127.0.0.1"


def is_shared(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether many people may have this address, because a proxy does not forward theirs."""
    address = address_of(connection)
    return is_loopback(address) or services.settings.is_proxy(address)


def find_device_token(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> Token | None:
    """Return the device token of a browser that has signed in before. It lets nobody in."""
    cookie = connection.cookies.get(DEVICE_COOKIE, "")
    return find_token(services, cookie, "device") if cookie else None


def rate_limit_key(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    """Whose requests count together: an address, of IPv6 its network of /64."""
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


def is_local_request(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
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
