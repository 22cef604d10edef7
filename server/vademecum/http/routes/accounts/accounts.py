"""Define the routes for sign-in, for the user's own account and its API tokens, and for administering accounts."""

from contextlib import AbstractAsyncContextManager
from typing import Annotated

import msgspec
from litestar import Response, Router, delete, get, patch, post
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
from vademecum.services.accounts import tokens
from vademecum.services.accounts.accounts import Profile
from vademecum.services.accounts.sign_in import PASSWORD_MAX

LEAVE = "leave for good"
BODY_MAX = 64 * 2**10  # small, because some of these routes need no authentication
Email = Annotated[str, Meta(max_length=320)]
Password = Annotated[str, Meta(max_length=PASSWORD_MAX)]
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
    """A changed account. `link` is the path of a one-time sign-in link after a password reset, otherwise null."""

    account: Profile
    link: str | None = None


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    name: Short = "api"


class TokenSecret(msgspec.Struct):
    """A new API token. Its `secret` cannot be shown again."""

    token: tokens.TokenInfo
    secret: str


class LeaveConfirmation(msgspec.Struct):
    confirm: Short = ""  # optional, so that the error message can say what to send


class SignedIn(msgspec.Struct, rename="camel"):
    signed_in: bool = True


@post(
    "/v1/sign-in",
    status_code=200,
    opt={"public": True, "rate": "sign_in"},
    security=PUBLIC,
    operation_id="signIn",
    tags=["account"],
    summary="Sign in a browser",
    responses=problem_specs(SignedOut, Busy),
)
async def sign_in_route(request: Req, data: JSONBody[Credentials]) -> Response[SignedIn]:
    """Sign in with email and password. The response sets an HttpOnly session cookie; programs use an API token instead. Each
    wrong password delays the next attempt for its client address and its account. A second cookie exempts browsers that
    have signed in before from these delays."""
    async with _password_attempt(request, data.email):
        secret = await request.services.sign_in.sign_in_with_password(data.email, data.password)
    return Response(SignedIn(), cookies=await sign_in_cookies(request, secret))


@post(
    "/v1/sign-out", status_code=200, operation_id="signOut", tags=["account"], summary="Sign out this browser"
)
async def sign_out_route(request: Req) -> Response[SignedIn]:
    """End the session that the cookie identifies. This does not revoke API tokens."""
    if request.auth.kind == "cookie":
        await request.services.sign_in.sign_out(request.auth)
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
async def password_route(request: Req, data: JSONBody[NewPassword]) -> Response[SignedIn]:
    """Set or change the password of the account and sign out all its other browsers. `current` is required if the account
    has a password. An API token cannot set the first password."""
    if request.user.password is None:  # otherwise `current` proves the user's identity, even with a token
        tokens.check_may_create_credentials(
            request.auth,
            "Sign in with a link (`vademecum user link EMAIL` on the server's machine), and set the password in the app's "
            "settings.",
        )
    async with _password_attempt(request, request.user.email):
        await request.services.sign_in.change_password(request.user, data.current, data.new, request.auth)
    cookies = [await device_cookie(request, request.auth)] if request.auth.kind == "cookie" else []
    return Response(SignedIn(), cookies=cookies)


def _password_attempt(request: Req, email: str) -> AbstractAsyncContextManager[None]:
    services = request.services
    return services.sign_in.password_attempt(
        rate_limit_key(request),
        email,
        find_device_token(services, request),
        is_shared=is_shared(services, request),
    )


@get("/v1/me", operation_id="getMe", tags=["account"], summary="Get your account with its limits and usage")
async def me_route(request: Req) -> Profile:
    """Return the account of the request. `limits` depend on its tier, and `usage` counts against them."""
    return await request.services.account_service.profile(request.user)


@delete(
    "/v1/me",
    status_code=200,
    operation_id="leave",
    tags=["account"],
    summary="Delete your account",
    responses=problem_specs(Conflict),
)
async def leave_route(request: Req, data: JSONBody[LeaveConfirmation]) -> Response[Deleted]:
    """Delete the account and erase all its data immediately. The body is `{"confirm": "leave for good"}`. The only
    administrator of a server with other accounts must first make another account an administrator."""
    if data.confirm != LEAVE:
        raise BadRequest(f'To delete your account, send {{"confirm": "{LEAVE}"}}. Nothing was changed.')
    await request.services.account_deletion.delete(request.user)
    return Response(Deleted(1), cookies=[expired_session_cookie(request)])


@get("/v1/tokens", operation_id="listTokens", tags=["account"], summary="List API tokens")
async def tokens_route(request: Req) -> list[tokens.TokenInfo]:
    """Return the names and dates of the API tokens. A token's secret is shown only once, when the token is created."""
    return request.services.tokens.list_api_tokens(request.user)


@post(
    "/v1/tokens",
    operation_id="createToken",
    tags=["account"],
    summary="Create an API token",
    responses=problem_specs(Forbidden, Conflict),
)
async def new_token_route(request: Req, data: JSONBody[NewToken]) -> TokenSecret:
    """Create an API token. Clients send its `secret` as `Authorization: Bearer …`; the secret cannot be shown again. An
    account can have at most 100 API tokens. Only a signed-in browser or `vademecum token create EMAIL` can create a token.
    An API token cannot, so that revoking a stolen token is enough to lock the thief out."""
    secret = await request.services.tokens.create_api_token(request.user, data.name, request.auth)
    return TokenSecret(tokens.info(request.services.accounts.tokens[tokens.digest(secret)]), secret)


@delete(
    "/v1/tokens/{token_id:str}",
    status_code=200,
    operation_id="revokeToken",
    tags=["account"],
    summary="Revoke an API token",
    responses=problem_specs(NotFound),
)
async def revoke_route(request: Req, token_id: FromPath[str]) -> Deleted:
    """Revoke an API token immediately and close its event streams."""
    await request.services.tokens.revoke(request.user, token_id)
    return Deleted(1)


@get(
    "/v1/accounts",
    operation_id="listAccounts",
    tags=["administration"],
    summary="List all accounts",
    responses=problem_specs(Forbidden),
)
async def accounts_route(request: Req, email: FromQuery[str | None] = None) -> list[Profile]:
    """List all accounts, or the account with this email. For administrators only. If the file of an account cannot be
    opened, `problem` gives the reason and `usage` is null."""
    service = require_administrator(request).account_service
    return [await service.profile(account) for account in service.list_accounts(email)]


@post(
    "/v1/accounts",
    operation_id="createAccount",
    tags=["administration"],
    summary="Create an account",
    responses=problem_specs(Forbidden, Conflict, Busy),
)
async def new_account_route(request: Req, data: JSONBody[NewAccount]) -> Profile:
    """Create an account. For administrators only. A user without a password signs in with a link that a password reset
    creates. An API token can create only accounts without a password."""
    service = require_administrator(request).account_service
    if data.password is not None:
        tokens.check_may_create_credentials(
            request.auth,
            "Omit the password, or add the account with `vademecum user add EMAIL --password-stdin` on the server's "
            "machine.",
        )
    return await service.profile(await service.create(data.email, data.tier, password=data.password))


@patch(
    "/v1/accounts/{account_id:str}",
    operation_id="changeAccount",
    tags=["administration"],
    summary="Change the tier or reset the password of an account",
    responses=problem_specs(Forbidden, NotFound),
)
async def change_account_route(
    request: Req, account_id: FromPath[str], data: JSONBody[AccountChange]
) -> Changed:
    """Change the tier of an account or reset its password. For administrators only. `resetPassword` signs out every browser
    of the account and returns the path of a sign-in link, which is valid once within 15 minutes. An API token cannot
    reset passwords."""
    service = require_administrator(request).account_service
    if data.reset_password:
        tokens.check_may_create_credentials(
            request.auth,
            "Create a sign-in link with `vademecum user link EMAIL` on the server's machine.",
        )
    account = service.get(account_id)
    if data.tier is not None:
        account = await service.change_tier(account, data.tier)
    link = await service.reset_password(account) if data.reset_password else None
    return Changed(await service.profile(account), link)


@delete(
    "/v1/accounts/{account_id:str}",
    status_code=200,
    operation_id="deleteAccount",
    tags=["administration"],
    summary="Delete an account and all its data",
    responses=problem_specs(Forbidden, NotFound, Conflict),
)
async def remove_account_route(request: Req, account_id: FromPath[str]) -> Deleted:
    """Delete an account and erase all its data immediately. For administrators only. The only administrator cannot be
    deleted while there are other accounts."""
    services = require_administrator(request)
    await services.account_deletion.delete(services.account_service.get(account_id))
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
