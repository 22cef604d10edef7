"""What a person sees who signs in by a link: small pages without scripts. The app and programs use `/v1/sign-in`."""

from html import escape
from typing import Annotated, Any

import msgspec
from litestar import MediaType, Request, Response, get, post
from litestar.datastructures import State
from litestar.enums import RequestEncodingType
from litestar.params import BodyKwarg, FromQuery
from msgspec import Meta

from vademecum.errors import SignedOut
from vademecum.http.auth import sign_in_cookies
from vademecum.http.security_headers import policy_with_style
from vademecum.model.records.accounts import Account
from vademecum.services.accounts import sign_in
from vademecum.services.accounts.tokens import find_token
from vademecum.services.runtime.container import Services

Public = Request[None, None, State]
# As the app looks, by what is in every browser.
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
    "Whoever runs the server makes a new one with <code>vademecum user link EMAIL</code>. It takes the password away, if "
    "there is one, and signs out every browser."
)
# Who goes back from the app's first page comes here, too.
_OPEN = '<p>Signed in already, or with a password? <a href="/">Open Vademecum</a></p>'
_USED_UP = f"<p>This sign-in link was used already, or is older than {sign_in.LINK_MINUTES} minutes.</p>{_OPEN}<p>{_ASK}</p>"
_SIGNED_OUT = f"<p>This browser is signed out. A sign-in link signs it in. {_ASK}</p>{_OPEN}"


@get("/v1/sign-in", opt={"public": True, "rate": "sign_in"}, include_in_schema=False)
async def link_page(state: State, link: FromQuery[str] = "") -> Response[str]:
    """A button, so that a mail program that looks at links ahead does not use this one up."""
    services: Services = state.services
    token = find_token(services, link, "link")
    if token is None:
        return _page(_USED_UP if link else _SIGNED_OUT)
    name = _name(services.accounts.accounts[token.account_id])
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
        secret = await sign_in.use_link(state.services, data.link)
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
