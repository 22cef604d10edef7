"""Who is asking, and not too often: a Bearer token or the HttpOnly cookie. Routes without `opt={"public": True}` need
one."""

from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from litestar.connection import ASGIConnection
from litestar.datastructures import Cookie, MutableScopeHeaders
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import Message, Receive, Scope, Send

from vademecum.errors import Forbidden, NotFound, SignedOut
from vademecum.fair_queue import activity, current_user
from vademecum.http.rate_limits import (
    DEVICE_COOKIE,
    find_device_token,
    is_local_request,
    limit_account,
    limit_address,
)
from vademecum.model.records.accounts import Account, Token
from vademecum.services.accounts import local_auth
from vademecum.services.accounts.sign_in import COOKIE_S, DEVICE_S, keep_alive, new_device
from vademecum.services.accounts.tokens import check_still_in, digest, find_token
from vademecum.services.agents import folder_check
from vademecum.services.runtime.container import Services

SESSION_COOKIE = "vademecum"
ACCOUNT_HEADER = (
    "x-vademecum-account"  # the id of the account that a request is meant for, from those who hold its rows
)
LOCAL_ADMIN = Account("local", "local", "JIGGA", True, None, "")
LOCAL = "local"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


class Authentication(AbstractAuthenticationMiddleware):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A body may come slowly, and who sends it may be signed out meanwhile: else a request that a thief has begun
        would be carried out after the password was changed."""

        async def receive_from_who_is_in() -> Any:
            message = await receive()
            if message["type"] == "http.request" and scope.get("method") not in SAFE_METHODS:
                _recheck_token(scope)
            return message

        await super().__call__(scope, receive_from_who_is_in, send)

    async def authenticate_request(
        self, connection: ASGIConnection[Any, Any, Any, Any]
    ) -> AuthenticationResult:
        services: Services = connection.app.state.services
        limit_address(services, connection)
        if connection.route_handler.opt.get("public"):
            _check_origin(services, connection)  # else another site could sign a browser in as somebody else
            return AuthenticationResult(user=None, auth=None)
        account, token = authenticate(services, connection)
        _check_account(account, connection)
        limit_account(services, connection, account.id)
        current_user.set(account.id)
        activity.note(account.id)
        return AuthenticationResult(user=account, auth=token)


def _recheck_token(scope: Scope) -> None:
    """Raises SignedOut. What the account may do is what it may now."""
    token = scope.get("auth")
    if isinstance(token, Token) and token.id != LOCAL:
        services: Services = scope["litestar_app"].state.services
        check_still_in(services, token)
        scope["user"] = services.accounts.accounts[token.account_id]


def require_administrator(connection: ASGIConnection[Any, Account, Any, Any]) -> Services:
    """The server's services, for an administrator. Raises Forbidden for anybody else."""
    if not connection.user.admin:
        raise Forbidden("This is for administrators of the server.")
    services: Services = connection.app.state.services
    return services


def authenticate(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> tuple[Account, Token]:
    """The account and the credential of this request. Raises SignedOut, or Forbidden for a foreign page's request."""
    header = connection.headers.get("authorization", "")
    scheme, _, secret = header.partition(" ")
    if scheme.lower() == "local":
        return _authenticate_local_command(services, connection, secret)
    if scheme.lower() == "bearer" and secret:
        found = find_token(services, secret.strip(), "api")
        if found is None:
            raise SignedOut(
                "This token is unknown or revoked. `vademecum token create EMAIL` makes a new one."
            )
    else:
        cookie = connection.cookies.get(SESSION_COOKIE, "")
        found = find_token(services, cookie, "cookie") if cookie else None
        if found is not None:
            _check_origin(services, connection)
    if found is None:
        raise SignedOut("You are signed out here. What is on this device is safe; sign in to go on.")
    return services.accounts.accounts[found.account_id], found


def _authenticate_local_command(
    services: Services, connection: ASGIConnection[Any, Any, Any, Any], secret: str
) -> tuple[Account, Token]:
    """A command on this machine, acting for the account named by `X-Vademecum-User` (an email, quoted), or as administrator."""
    if not is_local_request(connection) or not local_auth.opens(services.local_secret, secret):
        raise SignedOut("The local door is for commands on the server's own machine.")
    email = unquote(connection.headers.get("x-vademecum-user", ""))
    account = services.accounts.by_email(email) if email else LOCAL_ADMIN
    if account is None:
        raise NotFound(f"There is no account {email}. `vademecum user list` shows them all.")
    return account, Token(LOCAL, account.id, "api", "command line", "", "")


def folder_access_for(connection: ASGIConnection[Any, Account, Token, Any]) -> folder_check.FolderAccess:
    """Let only commands of this machine learn which folders it has.

    Anybody may use an account through a proxy or a tunnel, whose requests come from the loopback address.
    """
    return folder_check.LOCAL if connection.auth.id == LOCAL else folder_check.REMOTE


def session_cookie(connection: ASGIConnection[Any, Any, Any, Any], secret: str) -> Cookie:
    """What lets a browser in from now on."""
    return _cookie(connection, secret, COOKIE_S)


async def sign_in_cookies(connection: ASGIConnection[Any, Any, Any, Any], secret: str) -> list[Cookie]:
    """Return what a browser that signs in receives: its session and, unless it has one, the cookie of a known browser."""
    services: Services = connection.app.state.services
    session = services.accounts.tokens.get(digest(secret))
    if session is None:  # signed out in this moment
        return [session_cookie(connection, secret)]
    device = find_device_token(services, connection)
    if device is not None and device.account_id == session.account_id:
        return [session_cookie(connection, secret)]
    return [session_cookie(connection, secret), await device_cookie(connection, session)]


async def device_cookie(connection: ASGIConnection[Any, Any, Any, Any], session: Token) -> Cookie:
    """Make the browser of this session a known one. Raise SignedOut if the session has ended."""
    secret = await new_device(connection.app.state.services, session)
    return _cookie(connection, secret, DEVICE_S, DEVICE_COOKIE)


def expired_session_cookie(connection: ASGIConnection[Any, Any, Any, Any]) -> Cookie:
    """What makes a browser forget its secret."""
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
    """Before an answer goes out: a browser that is in use stays signed in.

    At any ordinary request and not at one of the app's start: a device that only syncs, or an app that stays open for
    months, is in use too. Streams are left out: the requests beside them do it.
    """
    token = scope.get("auth")
    if message["type"] != "http.response.start" or not isinstance(token, Token) or token.kind != "cookie":
        return
    headers = MutableScopeHeaders.from_message(message)
    if headers.get("content-type", "").startswith("text/event-stream"):
        return
    connection: ASGIConnection[Any, Any, Any, Any] = ASGIConnection(scope)
    if await keep_alive(connection.app.state.services, token):
        _, value = session_cookie(connection, connection.cookies[SESSION_COOKIE]).to_encoded_header()
        headers.add("set-cookie", value.decode("latin-1"))


def _is_secure(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Did the browser come by HTTPS? A trusted proxy has set the scheme before we see it."""
    services: Services = connection.app.state.services
    return connection.scope.get("scheme") == "https" or services.settings.origin.startswith("https:")


def _check_account(account: Account, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """A browser has one cookie for all its tabs: whoever signs in in one of them must not get the rows of another."""
    if connection.headers.get(ACCOUNT_HEADER, account.id) != account.id:
        raise SignedOut(
            "This browser is signed in to another account by now. What is on this device is safe."
        )


def _check_origin(services: Services, connection: ASGIConnection[Any, Any, Any, Any]) -> None:
    """A cookie travels with requests that other sites cause: those carry their own Origin."""
    if connection.scope.get("method", "GET") in SAFE_METHODS:
        return
    origin = connection.headers.get("origin")
    if origin is None and connection.headers.get("sec-fetch-site") in (None, "same-origin", "none"):
        return
    said, public = _split(origin or ""), urlsplit(services.settings.origin)
    known = said.netloc != "" and said.netloc in (connection.headers.get("host", ""), public.netloc)
    # By plain HTTP anybody on the line can answer in our name, and have a page there write to us by HTTPS.
    is_secure = connection.scope.get("scheme") == "https" or (
        public.scheme == "https" and said.netloc == public.netloc
    )
    if not known or (is_secure and said.scheme != "https"):
        raise Forbidden("This request came from another site and was not carried out.")


def _split(origin: str) -> SplitResult:
    """Empty when it is no URL at all: anybody may send anything as an Origin."""
    try:
        return urlsplit(origin)
    except ValueError:
        return urlsplit("")
