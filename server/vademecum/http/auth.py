"""Who is asking, and not too often: a Bearer token or the HttpOnly cookie. Routes without `opt={"public": True}` need
one."""

from typing import Any
from urllib.parse import unquote, urlsplit

from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from vademecum.engines.duckdb.accounts import Account, Token
from vademecum.errors import Forbidden, NotFound, SignedOut
from vademecum.http.rates import is_here, limit_account, limit_address
from vademecum.services import local
from vademecum.services.parts import Parts
from vademecum.services.sign_in import find_token

COOKIE = "vademecum"
LOCAL_ADMIN = Account("local", "local", "JIGGA", True, None, "")
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})


class Authentication(AbstractAuthenticationMiddleware):
    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        parts: Parts = connection.app.state.parts
        limit_address(parts, connection)
        if connection.route_handler.opt.get("public"):
            _check_origin(parts, connection)  # else another site could sign a browser in as somebody else
            return AuthenticationResult(user=None, auth=None)
        account, token = who(parts, connection)
        limit_account(parts, connection, account.id)
        return AuthenticationResult(user=account, auth=token)


def who(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Account, Token]:
    """The account and the credential of this request. Raises SignedOut, or Forbidden for a foreign page's request."""
    header = connection.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    if scheme.lower() == "local":
        return _through_local_door(parts, connection, secret)
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


def _through_local_door(
    parts: Parts, connection: ASGIConnection[Any, Any, Any, Any], secret: str
) -> tuple[Account, Token]:
    """A command on this machine, acting for the account named by `X-Vademecum-User` (an email, quoted), or as administrator."""
    if not is_here(connection) or not local.opens(parts.local_secret, secret):
        raise SignedOut("The local door is for commands on the server's own machine.")
    email = unquote(connection.headers.get("x-vademecum-user", ""))
    account = parts.accounts.by_email(email) if email else LOCAL_ADMIN
    if account is None:
        raise NotFound(f"There is no account {email}. `vademecum user list` shows them all.")
    return account, Token("local", account.id, "api", "command line", "", "")


def is_secure(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Did the browser come by HTTPS? A trusted proxy has set the scheme before we see it."""
    parts: Parts = connection.app.state.parts
    return connection.scope.get("scheme") == "https" or parts.settings.origin.startswith("https:")


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
