"""Authenticate requests and apply their rate limits.

A request needs a Bearer token, a session cookie or the credential of local commands, unless its route has
`opt={"public": True}`.
"""

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, MutableScopeHeaders
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import Message, Receive, Scope, Send

from vademecum.errors import Forbidden, NotFound, SignedOut
from vademecum.fair_queue import activity, current_user
from vademecum.http.parameters import Req
from vademecum.http.rate_limits import (
    DEVICE_COOKIE,
    find_device_token,
    is_local_request,
    limit_account,
    limit_address,
)
from vademecum.model.records.accounts import Account, Token
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.sign_in import COOKIE_S, DEVICE_S
from vademecum.services.accounts.tokens import digest
from vademecum.services.agents import folder_check
from vademecum.services.runtime.composition import Services

SESSION_COOKIE = "vademecum"
# Clients that store the rows of an account send the account's id in this header.
ACCOUNT_HEADER = "x-vademecum-account"
LOCAL_ADMIN = Account("local", "local", "JIGGA", True, None, "")
LOCAL = "local"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Authentication(AbstractAuthenticationMiddleware):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Authenticate the request, and for writes check the token again after each piece of the body.

        Otherwise a thief with a stolen token could begin a request with a slow body and complete it after the token was
        revoked.
        """

        async def receive_if_signed_in() -> Any:
            message = await receive()
            if message["type"] == "http.request" and scope.get("method") not in SAFE_METHODS:
                _recheck_token(scope)
            return message

        await super().__call__(scope, receive_if_signed_in, send)

    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        services: Services = connection.app.state.services
        limit_address(services, connection)
        if connection.route_handler.opt.get("public"):
            # Otherwise another site could sign the browser in to the attacker's account.
            _check_origin(services, connection)
            return AuthenticationResult(user=None, auth=None)
        account, token = authenticate(services, connection)
        _check_account(account, connection)
        limit_account(services, connection, account.id)
        current_user.set(account.id)
        activity.note(account.id)
        return AuthenticationResult(user=account, auth=token)


def _recheck_token(scope: Scope) -> None:
    """Check that the token is still valid and refresh the account of the request. Raises SignedOut."""
    token = scope.get("auth")
    if isinstance(token, Token) and token.id != LOCAL:
        services: Services = scope["litestar_app"].state.services
        services.tokens.check_valid(token)
        scope["user"] = services.accounts.accounts[token.account_id]


def require_administrator(request: Req) -> Services:
    """Return the services for an administrator. Raises Forbidden for other accounts."""
    if not request.user.admin:
        raise Forbidden("Only administrators of this server can do this. Nothing was changed.")
    return request.services


def authenticate(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Account, Token]:
    """Return the account and token of a request.

    Raises SignedOut without a valid credential, and Forbidden for a write that a page of another site sent.
    """
    header = connection.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    if scheme.lower() == "local":
        return _authenticate_local_command(services, connection, secret)
    if scheme.lower() == "bearer" and secret:
        token = services.tokens.find(secret.strip(), "api")
        if token is None:
            raise SignedOut(
                "This API token is unknown or revoked. Create a new one with `vademecum token create EMAIL`."
            )
    else:
        cookie = connection.cookies.get(SESSION_COOKIE, "")
        token = services.tokens.find(cookie, "cookie") if cookie else None
        if token is not None:
            _check_origin(services, connection)
    if token is None:
        raise SignedOut("You are signed out. The data on this device is safe. Sign in to continue.")
    return services.accounts.accounts[token.account_id], token


def _authenticate_local_command(
    services: Services, connection: ASGIConnection[Any, Any, Any, Any], secret: str
) -> tuple[Account, Token]:
    """Authenticate a command on the server's machine.

    The request acts as the account whose email is in `X-Vademecum-User`, or as administrator without that header.
    """
    if not is_local_request(connection) or not local_auth.matches(services.local_secret, secret):
        raise SignedOut("This credential is only for commands on the server's own machine.")
    email = unquote(connection.headers.get("x-vademecum-user", ""))
    account = services.accounts.by_email(email) if email else LOCAL_ADMIN
    if account is None:
        raise NotFound(f"There is no account {email}. List all accounts with `vademecum user list`.")
    return account, Token(LOCAL, account.id, "api", "command line", "", "")


def folder_access_for(connection: ASGIConnection[Any, Account, Token, Any]) -> folder_check.FolderAccess:
    """Return `folder_check.LOCAL` for a local command, and `folder_check.REMOTE` for any other request.

    Only local commands may learn which folders exist. Any other request from the loopback address may come through a
    proxy.
    """
    return folder_check.LOCAL if connection.auth.id == LOCAL else folder_check.REMOTE


def session_cookie(connection: ASGIConnection[Any, Any, Any, Any], secret: str) -> Cookie:
    """Return the cookie that keeps a browser signed in."""
    return _cookie(connection, secret, COOKIE_S)


async def sign_in_cookies(request: Req, secret: str) -> list[Cookie]:
    """Return the session cookie and, if the browser has no device cookie for this account, a device cookie."""
    session = request.services.accounts.tokens.get(digest(secret))
    if session is None:  # revoked since the sign-in, so the browser gets no device cookie
        return [session_cookie(request, secret)]
    device = find_device_token(request.services, request)
    if device is not None and device.account_id == session.account_id:
        return [session_cookie(request, secret)]
    return [session_cookie(request, secret), await device_cookie(request, session)]


async def device_cookie(request: Req, session: Token) -> Cookie:
    """Create a device cookie, which marks the browser of this session as known.

    Raises SignedOut if the session has ended.
    """
    secret = await request.services.sign_in.remember_device(session)
    return _cookie(request, secret, DEVICE_S, DEVICE_COOKIE)


def expired_session_cookie(connection: ASGIConnection[Any, Any, Any, Any]) -> Cookie:
    """Return a cookie that makes the browser delete its session."""
    return _cookie(connection, "", 0)


def _cookie(
    connection: ASGIConnection[Any, Any, Any, Any], secret: str, max_age: int, name: str = SESSION_COOKIE
) -> Cookie:
    return Cookie(
        key=name,
        value=secret,
        path="/",
        httponly=True,
        samesite="lax",
        secure=_is_secure(connection),
        max_age=max_age,
    )


async def renew_cookie(message: Message, scope: Scope) -> None:
    """Extend the session before a response is sent, so that a browser in use stays signed in.

    Sync requests extend it, too, because a device may do nothing but sync, and the app may stay open for months. Event
    streams do not extend it, because their clients also send other requests.
    """
    token = scope.get("auth")
    if message["type"] != "http.response.start" or not isinstance(token, Token) or token.kind != "cookie":
        return
    headers = MutableScopeHeaders.from_message(message)
    if headers.get("content-type", "").startswith("text/event-stream"):
        return
    connection: ASGIConnection[Any, Any, Any, Any] = ASGIConnection(scope)
    services: Services = connection.app.state.services
    if await services.sign_in.extend_session(token):
        _, value = session_cookie(connection, connection.cookies[SESSION_COOKIE]).to_encoded_header()
        headers.add("set-cookie", value.decode("latin-1"))


def _is_secure(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Return whether the browser uses HTTPS. The scheme of the request already reflects a trusted proxy's headers."""
    services: Services = connection.app.state.services
    return connection.scope.get("scheme") == "https" or services.settings.origin.startswith("https:")


def _check_account(account: Account, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Raise SignedOut if the client expects another account.

    All tabs of a browser share one session cookie, so a sign-in in one tab changes the account of the other tabs.
    """
    if connection.headers.get(ACCOUNT_HEADER, account.id) != account.id:
        raise SignedOut("This browser is now signed in to another account. The data on this device is safe.")


def _check_origin(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """Raise Forbidden for a write from a page of another site.

    The browser adds the session cookie to such a request, but also an Origin header that names the other site.
    """
    if connection.scope.get("method", "GET") in SAFE_METHODS:
        return
    origin = connection.headers.get("origin")
    if origin is None and connection.headers.get("sec-fetch-site") in (None, "same-origin", "none"):
        return
    sender, public = _split(origin or ""), urlsplit(services.settings.origin)
    is_own = sender.netloc != "" and sender.netloc in (connection.headers.get("host", ""), public.netloc)
    # Over HTTPS, reject writes of pages from plain HTTP, because a man in the middle could have served them.
    is_secure = connection.scope.get("scheme") == "https" or (
        public.scheme == "https" and sender.netloc == public.netloc
    )
    if not is_own or (is_secure and sender.scheme != "https"):
        raise Forbidden("This request came from another site and was rejected. Nothing was changed.")


def _split(origin: str) -> SplitResult:
    """Split an Origin header into its parts, which are empty if the header is not a URL."""
    try:
        return urlsplit(origin)
    except ValueError:
        return urlsplit("")
