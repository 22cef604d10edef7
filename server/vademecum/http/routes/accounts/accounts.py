"""Sign-in and sign-out, the own account and its API tokens, and the administration of accounts."""

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
BODY_MAX = 64 * 2**10  # small, because these routes include those without authentication
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
    """`link`: the path of a one-time sign-in link after a password reset."""

    account: Profile
    link: str | None = None


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    name: Short = "api"


class TokenSecret(msgspec.Struct):
    """`secret` cannot be shown again."""

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
    """Set an HttpOnly session cookie. Programs use an API token instead. Wrong passwords delay the next attempt, by address
    and by account; a second cookie exempts browsers that have signed in before from these delays."""
    async with _password_attempt(request, data.email):
        secret = await request.services.sign_in.sign_in_with_password(data.email, data.password)
    return Response(SignedIn(), cookies=await sign_in_cookies(request, secret))


@post(
    "/v1/sign-out", status_code=200, operation_id="signOut", tags=["account"], summary="Sign out this browser"
)
async def sign_out_route(request: Req) -> Response[SignedIn]:
    """End the session of the cookie. This does not revoke an API token."""
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
    """Sign out every other browser of the account. `current` is required if there is a password. An API token cannot set
    the first password."""
    if request.user.password is None:  # the current password proves more than a token does
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


@get(
    "/v1/me", operation_id="getMe", tags=["account"], summary="Get the own account with its limits and usage"
)
async def me_route(request: Req) -> Profile:
    """`limits` depend on the account's tier; `usage` counts against them."""
    return await request.services.account_service.profile(request.user)


@delete(
    "/v1/me",
    status_code=200,
    operation_id="leave",
    tags=["account"],
    summary="Delete the own account",
    responses=problem_specs(Conflict),
)
async def leave_route(request: Req, data: JSONBody[LeaveConfirmation]) -> Response[Deleted]:
    """Delete the account and erase all its data at once. The body is `{"confirm": "leave for good"}`. The only
    administrator of a server with other accounts must first make another account an administrator."""
    if data.confirm != LEAVE:
        raise BadRequest(f'To delete your account, send {{"confirm": "{LEAVE}"}}. Nothing was changed.')
    await request.services.account_deletion.delete(request.user)
    return Response(Deleted(1), cookies=[expired_session_cookie(request)])


@get("/v1/tokens", operation_id="listTokens", tags=["account"], summary="List API tokens")
async def tokens_route(request: Req) -> list[tokens.TokenInfo]:
    """Return names and dates. A secret is shown only once, when the token is created."""
    return request.services.tokens.list_api_tokens(request.user)


@post(
    "/v1/tokens",
    operation_id="createToken",
    tags=["account"],
    summary="Create an API token",
    responses=problem_specs(Forbidden, Conflict),
)
async def new_token_route(request: Req, data: JSONBody[NewToken]) -> TokenSecret:
    """Send `secret` as `Authorization: Bearer …`. It cannot be shown again. An account has at most 100 API tokens. A
    signed-in browser or `vademecum token create EMAIL` can create one, but not another API token: revoking a stolen token
    must lock the thief out."""
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
    """Revoke the token at once and end its streams."""
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
    """For administrators. `problem` tells why an account's file cannot be opened; then `usage` is null."""
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
    """For administrators. A user without a password signs in with a link, which a password reset creates. An API token can
    create only accounts without a password."""
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
    """For administrators. `resetPassword` signs out every browser and returns the path of a sign-in link that works once
    within 15 minutes. An API token cannot do that."""
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
    """For administrators. Erases all data of the account at once. The only administrator cannot be deleted while there are
    other accounts."""
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
