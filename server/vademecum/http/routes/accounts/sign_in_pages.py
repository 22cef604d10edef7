"""HTML pages without scripts for sign-in by link. The app and programs use `/v1/sign-in`."""

from html import escape
from typing import Annotated, Any

import msgspec
from litestar import MediaType, Response, get, post
from litestar.enums import RequestEncodingType
from litestar.params import BodyKwarg, FromQuery
from msgspec import Meta

from vademecum.errors import SignedOut
from vademecum.http.auth import sign_in_cookies
from vademecum.http.parameters import Req
from vademecum.http.security_headers import policy_with_style
from vademecum.model.records.accounts import Account
from vademecum.services.accounts import sign_in

# The pages resemble the app, but use only features that every browser supports.
_STYLE = """:root{color-scheme:light dark}
body{font:1rem/1.6 system-ui;max-width:34rem;margin:15vh auto;padding:0 1rem}
h1{font-size:1.6rem}
pre{overflow:auto}
button{font:inherit;font-weight:600;padding:.6rem 1.6rem;border:0;border-radius:.5rem;background:#087f5b;color:#fff;cursor:pointer}
button:hover{background:#066649}"""
_HEADERS = {"Cache-Control": "no-store", **policy_with_style(_STYLE)}
_HEAD = f"""<!doctype html><html lang="en"><meta charset="utf-8"><title>Vademecum</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,"><style>{_STYLE}</style>
<h1>Vademecum</h1>"""
_ASK = (
    "The administrator of this server can create a new one with <code>vademecum user link EMAIL</code>. That removes the "
    "password, if there is one, and signs out every browser."
)
# Signed-in users can reach these pages too, for example with the back button from the app's first page.
_OPEN = '<p>Signed in already, or with a password? <a href="/">Open Vademecum</a></p>'
_USED_UP = f"<p>This sign-in link was already used, or is older than {sign_in.LINK_MINUTES} minutes.</p>{_OPEN}<p>{_ASK}</p>"
_SIGNED_OUT = f"<p>This browser is signed out. Open a sign-in link to sign in. {_ASK}</p>{_OPEN}"


@get("/v1/sign-in", opt={"public": True, "rate": "sign_in"}, include_in_schema=False)
async def link_page(request: Req, link: FromQuery[str] = "") -> Response[str]:
    """Show a page with a sign-in button. Opening the link does not sign in, because mail programs preview links."""
    token = request.services.tokens.find(link, "link")
    if token is None:
        return _page(_USED_UP if link else _SIGNED_OUT)
    name = _name(request.services.accounts.accounts[token.account_id])
    return _page(
        f'<p>This link signs this browser in as {name}. It works once.</p><form method="post" action="/v1/sign-in/link">'
        f'<input type="hidden" name="link" value="{escape(link)}"><button>Sign in</button></form>'
    )


class LinkForm(msgspec.Struct):
    link: Annotated[str, Meta(max_length=100)] = ""


@post("/v1/sign-in/link", opt={"public": True, "rate": "sign_in"}, include_in_schema=False)
async def link_route(
    request: Req,
    data: Annotated[LinkForm, BodyKwarg(media_type=RequestEncodingType.URL_ENCODED)],
) -> Response[Any]:
    """Sign in with a one-time link. Report an invalid link as HTML to clients that accept HTML."""
    try:
        secret = await request.services.sign_in.use_link(data.link)
    except SignedOut:
        if "text/html" not in request.headers.get("accept", ""):
            raise
        return _page(_USED_UP, 401)
    return Response(
        None, status_code=303, headers={"Location": "/"}, cookies=await sign_in_cookies(request, secret)
    )


def _name(account: Account) -> str:
    return f"<b>{escape(account.email)}</b>" + (" (administrator)" if account.admin else "")


def _page(body: str, status: int = 200) -> Response[str]:
    return Response(f"{_HEAD}{body}</html>", status_code=status, media_type=MediaType.HTML, headers=_HEADERS)


ROUTES = [link_page, link_route]
