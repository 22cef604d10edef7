"""What a person sees of signing in and out: small pages without scripts. The app and programs use `/v1/sign-in`."""

from html import escape
from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.connection import ASGIConnection
from litestar.datastructures import State
from litestar.enums import RequestEncodingType
from litestar.params import BodyKwarg, FromQuery
from msgspec import Meta

from vademecum.engines.duckdb.accounts import Account, Token
from vademecum.errors import SignedOut
from vademecum.http.auth import COOKIE, entry_cookie, no_cookie
from vademecum.http.headers import allows_style
from vademecum.services import sign_in
from vademecum.services.parts import Parts

Public = Request[None, None, State]
_STYLE = "body{font:1.1rem/1.6 system-ui;max-width:34rem;margin:15vh auto;padding:0 1rem}pre{overflow:auto}button{font:inherit;padding:.6rem 1.4rem}"
_HEADERS = {"Cache-Control": "no-store", **allows_style(_STYLE)}
_HEAD = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Vademecum</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>{_STYLE}</style>
<h1>Vademecum</h1>"""
_ABOUT = """<p>The server is running. Your devices sync with it, and documents can be imported and searched:</p>
<pre>vademecum import FOLDER --user EMAIL --session NAME
vademecum search "a question" --user EMAIL --session NAME</pre>
<p><a href="/schema">What the API can do</a></p>"""
_ASK = "Whoever runs the server makes a new one with <code>vademecum user link EMAIL</code>."
_USED_UP = f"<p>This sign-in link was used already, or is older than 15 minutes. {_ASK}</p>"
_SIGNED_OUT = f"<p>This browser is signed out. A sign-in link signs it in. {_ASK}</p>"


@get("/v1/sign-in", opt={"public": True, "rate": "sign_in"}, include_in_schema=False)
async def link_page(state: State, link: FromQuery[str] = "") -> Response[str]:
    """A button, so that a mail program that looks at links ahead does not use this one up."""
    parts: Parts = state.parts
    token = sign_in.find_token(parts, link, "link")
    if token is None:
        return _page(_USED_UP if link else _SIGNED_OUT)
    name = _name(parts.accounts.accounts[token.account_id])
    return _page(
        f'<p>This link signs this browser in as {name}, once.</p><form method="post" action="/v1/sign-in/link">'
        f'<input type="hidden" name="link" value="{escape(link)}"><button>Sign in</button></form>'
    )


class LinkForm(msgspec.Struct):
    link: Annotated[str, Meta(max_length=100)] = ""


@post("/v1/sign-in/link", opt={"public": True, "rate": "sign_in"}, include_in_schema=False)
async def link_route(
    request: Public,
    data: Annotated[LinkForm, BodyKwarg(media_type=RequestEncodingType.URL_ENCODED)],
    state: State,
) -> Response[Any]:
    """Browsers say that they want HTML, and get it also when the link is no good."""
    try:
        secret = await sign_in.use_link(state.parts, data.link)
    except SignedOut:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _page(_USED_UP, 401)
    return _home(entry_cookie(request, secret))


@get("/", opt={"public": True, "rate": "read"}, include_in_schema=False)
async def front_page(request: Public, state: State) -> Response[str]:
    token = _visitor(state.parts, request)
    if token is None:
        return _page(_SIGNED_OUT + _ABOUT)
    account: Account = state.parts.accounts.accounts[token.account_id]
    return _page(
        f"<p>This browser is signed in as {_name(account)}.</p>"
        '<form method="post" action="/sign-out"><button>Sign out</button></form>' + _ABOUT
    )


@post("/sign-out", opt={"public": True, "rate": "write"}, include_in_schema=False)
async def sign_out_form(request: Public, state: State) -> Response[None]:
    """As `POST /v1/sign-out`, for the button; also for a browser that is signed out already."""
    parts: Parts = state.parts
    if (token := _visitor(parts, request)) is not None:
        await sign_in.sign_out(parts, token)
    return _home(no_cookie(request))


def _visitor(parts: Parts, connection: ASGIConnection[Any, Any, Any, Any]) -> Token | None:
    """The credential of the browser that asks, if it is signed in."""
    cookie = connection.cookies.get(COOKIE, "")
    return sign_in.find_token(parts, cookie, "cookie") if cookie else None


def _name(account: Account) -> str:
    return f"<b>{escape(account.email)}</b>" + (" (administrator)" if account.admin else "")


def _page(body: str, status: int = 200) -> Response[str]:
    return Response(f"{_HEAD}{body}</html>", status_code=status, media_type=MediaType.HTML, headers=_HEADERS)


def _home(cookie: Any) -> Response[None]:
    return Response(None, status_code=303, headers={"Location": "/"}, cookies=[cookie])


ROUTES = [link_page, link_route, front_page, sign_out_form]
