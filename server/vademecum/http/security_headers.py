"""Add security headers to every response: content security policy, isolation and caching."""

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
    """Return the value of the Content-Security-Policy header. `more` contains the directives that a page overrides."""
    policy = _POLICY | {name.replace("_", "-"): value for name, value in more.items()}
    return "; ".join(f"{name} {value}" for name, value in policy.items())


def policy_with_style(style: str) -> dict[str, str]:
    """Return the Content-Security-Policy header for a page with this inline style."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return {"Content-Security-Policy": content_security_policy(style_src=f"'sha256-{digest}'")}


_DEFAULTS = {
    # User data must not stay in the cache of a shared browser or a proxy. Static files set their own value.
    "Cache-Control": "no-store",
    "Content-Security-Policy": content_security_policy(),
    # Both headers are required for shared memory between threads, which makes the model up to twice as fast.
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # With `no-referrer`, browsers would send forms with `Origin: null`, and the server would reject them as cross-site.
    "Referrer-Policy": "same-origin",
}
_ENCODED_DEFAULTS = [(name.lower().encode(), value.encode()) for name, value in _DEFAULTS.items()]


async def add_security_headers(message: Message, _: Scope) -> None:
    """Add the security headers that the route has not set itself."""
    if message["type"] == "http.response.start":
        headers = list(message.get("headers", ()))
        present = {name.lower() for name, _ in headers}
        message["headers"] = headers + [header for header in _ENCODED_DEFAULTS if header[0] not in present]
