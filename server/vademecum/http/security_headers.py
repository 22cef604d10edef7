"""What every answer says to a browser: whom it may speak to, what it may run, and who may look at it."""

import base64
import hashlib

from litestar.types import Message, Scope

_POLICY = {
    "default-src": "'self'",
    "script-src": "'self' 'wasm-unsafe-eval'",  # the model runs as WebAssembly
    "worker-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self' data:",
    "object-src": "'none'",
    "base-uri": "'none'",
    "form-action": "'self'",
    "frame-ancestors": "'none'",
}


def content_security_policy(**more: str) -> str:
    """The Content-Security-Policy of all that is served; `more` is for a page that needs something else."""
    policy = _POLICY | {name.replace("_", "-"): value for name, value in more.items()}
    return "; ".join(f"{name} {value}" for name, value in policy.items())


def policy_with_style(style: str) -> dict[str, str]:
    """For a page of one file, with this style inside and no other."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {"Content-Security-Policy": content_security_policy(style_src=f"'sha256-{digest}'")}


_EVERYWHERE = {
    # What is somebody's stays in no cache, of a browser that others use or of a proxy. Files say how long they may be kept.
    "Cache-Control": "no-store",
    "Content-Security-Policy": content_security_policy(),
    # Both together give a page threads that share memory: they make the model up to twice as quick.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Not `no-referrer`: a form would then be sent with `Origin: null` and be taken for another site's.
    "Referrer-Policy": "same-origin",
}
_EVERYWHERE_ON_THE_WIRE = [(name.lower().encode(), value.encode()) for name, value in _EVERYWHERE.items()]


async def add_security_headers(message: Message, _: Scope) -> None:
    """Before an answer goes out. What a route says itself stays."""
    if message["type"] == "http.response.start":
        headers = list(message.get("headers", ()))
        said = {name.lower() for name, _ in headers}
        message["headers"] = headers + [both for both in _EVERYWHERE_ON_THE_WIRE if both[0] not in said]
