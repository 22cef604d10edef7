"""Signing in and out by programs and the app, one's own account and tokens, and the accounts that an administrator looks after."""

from typing import Annotated

import msgspec
from litestar import Request, Response, Router, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, FromQuery, JSONBody
from msgspec import Meta

from vademecum.errors import BadRequest, Busy, Conflict, Forbidden, NotFound, SignedOut
from vademecum.http.auth import device_cookie, expired_session_cookie, require_administrator, sign_in_cookies
from vademecum.http.openapi.routes import PUBLIC
from vademecum.http.parameters import Req
from vademecum.http.problem_details import problem_specs
from vademecum.http.rate_limits import find_device_token, is_shared, rate_limit_key
from vademecum.http.responses import Deleted
from vademecum.http.routes.accounts import sign_in_pages
from vademecum.model.sync.quotas import Tier
from vademecum.services.accounts import accounts, sign_in, tokens
from vademecum.services.runtime.container import Services

Public = Request[None, None, State]
LEAVE = "leave for good"
BODY_MAX = 64 * 2**10  # nothing here is large, and whoever is not signed in yet must not fill the memory
Email = Annotated[str, Meta(max_length=320)]
Password = Annotated[str, Meta(max_length=sign_in.PASSWORD_MAX)]
Short = Annotated[str, Meta(max_length=100)]


class Credentials(msgspec.Struct, forbid_unknown_fields=True):
    email: Email
    password: Password


class NewPassword(msgspec.Struct, forbid_unknown_fields=True):
    new: Password
    current: Password | None = None


class NewAccount(msgspec.Struct, forbid_unknown_fields=True):
    email: Email
    tier: Tier
    password: Password | None = None


class AccountChange(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    tier: Tier | None = None
    reset_password: bool = False


class Changed(msgspec.Struct):
    """`link`: the path of a one-time sign-in link, after a reset."""

    account: accounts.Profile
    link: str | None = None


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    name: Short = "api"


class TokenSecret(msgspec.Struct):
    """`secret` is shown this once."""

    token: tokens.TokenInfo
    secret: str


class LeaveConfirmation(msgspec.Struct):
    confirm: Short = ""  # the refusal of a body without it says what to send


class SignedIn(msgspec.Struct, rename="camel"):
    signed_in: bool = True


@post(
    "/v1/sign-in",
    status_code=200,
    opt={"public": True, "rate": "sign_in"},
    security=PUBLIC,
    operation_id="signIn",
    tags=["account"],
    summary="Sign a browser in",
    responses=problem_specs(SignedOut, Busy),
)
async def sign_in_route(request: Public, data: JSONBody[Credentials], state: State) -> Response[SignedIn]:
    """Answers with an HttpOnly cookie. Programs use a token instead. Wrong passwords delay the next try, by address and
    by account; a second cookie lets a browser that has signed in before pass these delays."""
    services: Services = state.services
    device = find_device_token(services, request)
    shared = is_shared(services, request)
    async with sign_in.guess(services, rate_limit_key(request), data.email, device, is_shared=shared):
        secret = await sign_in.with_password(services, data.email, data.password)
    return Response(SignedIn(), cookies=await sign_in_cookies(request, secret))


@post(
    "/v1/sign-out", status_code=200, operation_id="signOut", tags=["account"], summary="Sign this browser out"
)
async def sign_out_route(request: Req, state: State) -> Response[SignedIn]:
    """The cookie is good for nothing from now on. A token stays: revoke it instead."""
    services: Services = state.services
    if request.auth.kind == "cookie":
        await sign_in.sign_out(services, request.auth)
    return Response(SignedIn(False), cookies=[expired_session_cookie(request)])


@post(
    "/v1/password",
    status_code=200,
    opt={"rate": "sign_in"},
    operation_id="changePassword",
    tags=["account"],
    summary="Set or change the password",
    responses=problem_specs(Forbidden, Busy),
)
async def password_route(request: Req, data: JSONBody[NewPassword], state: State) -> Response[SignedIn]:
    """Every other browser of the account is signed out. `current` is needed where there is a password already. The first
    password is not set by an API token."""
    if request.user.password is None:  # who knows the current one proves more than a token does
        tokens.check_lets_in(
            request.auth,
            "Set the first password in the app's settings, signed in by a link: `vademecum user link EMAIL` makes one on "
            "the server's machine.",
        )
    services: Services = state.services
    device = find_device_token(services, request)
    shared = is_shared(services, request)
    async with sign_in.guess(services, rate_limit_key(request), request.user.email, device, is_shared=shared):
        await sign_in.change_password(services, request.user, data.current, data.new, request.auth)
    cookies = [await device_cookie(request, request.auth)] if request.auth.kind == "cookie" else []
    return Response(SignedIn(), cookies=cookies)


@get("/v1/me", operation_id="getMe", tags=["account"], summary="Who am I, what may I hold, what do I hold")
async def me_route(request: Req, state: State) -> accounts.Profile:
    """`limits` come with the account's tier; `usage` is what counts against them now."""
    return await accounts.profile(state.services, request.user)


@delete(
    "/v1/me",
    status_code=200,
    operation_id="leave",
    tags=["account"],
    summary="Leave for good",
    responses=problem_specs(Conflict),
)
async def leave_route(request: Req, data: JSONBody[LeaveConfirmation], state: State) -> Response[Deleted]:
    """The account and everything of it is erased at once. The body is `{"confirm": "leave for good"}`. The only
    administrator of others cannot leave: make another one first."""
    if data.confirm != LEAVE:
        raise BadRequest(f'To leave for good, send {{"confirm": "{LEAVE}"}}. Nothing was changed.')
    await accounts.remove(state.services, request.user)
    return Response(Deleted(1), cookies=[expired_session_cookie(request)])


@get("/v1/tokens", operation_id="listTokens", tags=["account"], summary="List API tokens")
async def tokens_route(request: Req, state: State) -> list[tokens.TokenInfo]:
    """Names and dates. A secret is shown once, when it is made."""
    return tokens.api_tokens(state.services, request.user)


@post(
    "/v1/tokens",
    operation_id="createToken",
    tags=["account"],
    summary="Make an API token",
    responses=problem_specs(Forbidden, Conflict),
)
async def new_token_route(request: Req, data: JSONBody[NewToken], state: State) -> TokenSecret:
    """Send `secret` as `Authorization: Bearer …`. It is shown this once. An account has at most 100. Made by a browser
    that is signed in, or by `vademecum token create EMAIL`, and by no other API token: whoever has stolen one is out when
    it is revoked."""
    services: Services = state.services
    secret = await tokens.new_api_token(services, request.user, data.name, request.auth)
    token = services.accounts.tokens[tokens.digest(secret)]
    return TokenSecret(tokens.TokenInfo(token.id, token.name, token.kind, token.created_at, None), secret)


@delete(
    "/v1/tokens/{token_id:str}",
    status_code=200,
    operation_id="revokeToken",
    tags=["account"],
    summary="Revoke an API token",
    responses=problem_specs(NotFound),
)
async def revoke_route(request: Req, token_id: FromPath[str], state: State) -> Deleted:
    """It is refused from now on, and its open streams end."""
    await tokens.revoke(state.services, request.user, token_id)
    return Deleted(1)


@get(
    "/v1/accounts",
    operation_id="listAccounts",
    tags=["administration"],
    summary="List all accounts",
    responses=problem_specs(Forbidden),
)
async def accounts_route(request: Req, email: FromQuery[str | None] = None) -> list[accounts.Profile]:
    """For administrators. `problem` says why an account's file cannot be opened; it has no `usage` then."""
    services = require_administrator(request)
    return [await accounts.profile(services, account) for account in accounts.listed(services, email)]


@post(
    "/v1/accounts",
    operation_id="createAccount",
    tags=["administration"],
    summary="Make an account",
    responses=problem_specs(Forbidden, Conflict, Busy),
)
async def new_account_route(request: Req, data: JSONBody[NewAccount]) -> accounts.Profile:
    """For administrators. Without a password the person gets in by a link: reset the password to have one. An API token
    makes accounts without a password only."""
    services = require_administrator(request)
    if data.password is not None:
        tokens.check_lets_in(
            request.auth,
            "Leave the password out, or add the account with `vademecum user add EMAIL --password-stdin` on the server's "
            "machine.",
        )
    return await accounts.profile(
        services, await accounts.create(services, data.email, data.tier, password=data.password)
    )


@patch(
    "/v1/accounts/{account_id:str}",
    operation_id="changeAccount",
    tags=["administration"],
    summary="Change a tier, reset a password",
    responses=problem_specs(Forbidden, NotFound),
)
async def change_account_route(
    request: Req, account_id: FromPath[str], data: JSONBody[AccountChange]
) -> Changed:
    """For administrators. `resetPassword` signs every browser out and answers with the path of a sign-in link, good
    once and for 15 minutes; not for an API token."""
    services = require_administrator(request)
    if data.reset_password:
        tokens.check_lets_in(
            request.auth,
            "`vademecum user link EMAIL` makes a sign-in link on the server's machine.",
        )
    account = accounts.by_id(services, account_id)
    if data.tier is not None:
        account = await accounts.change_tier(services, account, data.tier)
    link = await accounts.reset_password(services, account) if data.reset_password else None
    return Changed(await accounts.profile(services, account), link)


@delete(
    "/v1/accounts/{account_id:str}",
    status_code=200,
    operation_id="deleteAccount",
    tags=["administration"],
    summary="Remove an account and all it has",
    responses=problem_specs(Forbidden, NotFound, Conflict),
)
async def remove_account_route(request: Req, account_id: FromPath[str]) -> Deleted:
    """For administrators, of whom one stays while others are here. Everything of it is erased at once."""
    services = require_administrator(request)
    await accounts.remove(services, accounts.by_id(services, account_id))
    return Deleted(1)


ROUTES = [
    Router(
        "/",
        route_handlers=[
            *sign_in_pages.ROUTES,
            sign_in_route,
            sign_out_route,
            password_route,
            me_route,
            leave_route,
            tokens_route,
            new_token_route,
            revoke_route,
            accounts_route,
            new_account_route,
            change_account_route,
            remove_account_route,
        ],
        request_max_body_size=BODY_MAX,
    )
]
