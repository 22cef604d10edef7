"""Who is asking: a Bearer token or the HttpOnly cookie. Routes without `opt={"public": True}` need one."""

from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from vademecum.engines.duckdb.accounts import Account, Token
from vademecum.errors import Forbidden, SignedOut
from vademecum.services.parts import Parts
from vademecum.services.sign_in import find_token

COOKIE = "vademecum"
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Authentication(AbstractAuthenticationMiddleware):
    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        if connection.route_handler.opt.get("public"):
            return AuthenticationResult(user=None, auth=None)
        parts: Parts = connection.app.state.parts
        account, token = who(parts, connection)
        return AuthenticationResult(user=account, auth=token)


def who(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Account, Token]:
    """The account and the credential of this request. Raises SignedOut, or Forbidden for a foreign page's request."""
    header = connection.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    if scheme.lower() == "bearer" and secret:
        found = find_token(parts, secret.strip(), "api")
    else:
        cookie = connection.cookies.get(COOKIE, "")
        found = find_token(parts, cookie, "cookie") if cookie else None
        if found is not None:
            _check_origin(parts, connection)
    if found is None:
        raise SignedOut("You are signed out here. What is on this device is safe; sign in to go on.")
    return parts.accounts.accounts[found.account_id], found


def _check_origin(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """A cookie travels with requests that other sites cause: those carry their own Origin."""
    if connection.scope.get("method", "GET") in SAFE:
        return
    origin = connection.headers.get("origin")
    if origin is None and connection.headers.get("sec-fetch-site") in (None, "same-origin", "none"):
        return
    allowed = {connection.headers.get("host", ""), urlsplit(parts.settings.origin).netloc}
    if origin is None or urlsplit(origin).netloc not in allowed - {""}:
        raise Forbidden("This request came from another site and was not carried out.")
