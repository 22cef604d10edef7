"""Every response, including errors, has headers that allow only scripts and connections of the server's origin."""

import asyncio

from server.accounts.account_clients import with_browser
from server.in_process_server import browser, run, serve

PLACES = [
    "/",
    "/health",
    "/v1/me",
    "/nowhere",
    "/schema",
    "/schema/openapi.json",
    "/schema/files/start.js",
    "/v1/sign-in",
]


def directives(answer):
    parts = (part.strip().partition(" ") for part in answer.headers["content-security-policy"].split(";"))
    return {name: value for name, _, value in parts}


def test_every_response_has_security_headers(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            for place in PLACES:
                answer = await anonymous.get(place)
                policy = directives(answer)
                assert policy["script-src"] == "'self' 'wasm-unsafe-eval'", place
                assert policy["connect-src"] == policy["worker-src"] == policy["default-src"] == "'self'", (
                    place
                )
                assert policy["object-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'", (
                    place
                )
                assert answer.headers["cross-origin-opener-policy"] == "same-origin", place
                assert answer.headers["cross-origin-embedder-policy"] == "require-corp", place
                assert answer.headers["cross-origin-resource-policy"] == "same-origin", place
                assert answer.headers["x-content-type-options"] == "nosniff", place
                assert answer.headers["referrer-policy"] == "same-origin", place

    run(scenario)


def test_inline_styles_are_allowed_only_by_their_hash(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            for place in PLACES[1:]:  # not the app's page, whose UI library creates style elements
                answer = await anonymous.get(place)
                inline = "<style" in answer.text
                allowed = directives(answer).get("style-src", "")
                assert allowed.startswith("'sha256-") == inline and "unsafe" not in allowed, place

    run(scenario)


def test_private_responses_forbid_caching(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            await ada.upload("a.txt", "mine")
            secret = await (await with_browser(h, ada)).call("POST", "/v1/tokens", json={})
            assert (secret.status_code, secret.headers["cache-control"]) == (201, "no-store")
            for method, place, body in (
                ("GET", "/v1/me", None),
                ("GET", "/v1/documents", None),
                ("GET", "/v1/sync/documents/1/pull", None),
                ("GET", "/v1/export", None),
                ("POST", "/v1/search", {"query": "mine", "sessionId": "s1"}),
                ("GET", "/v1/nowhere", None),
            ):
                answer = await ada.call(method, place, json=body)
                assert answer.headers["cache-control"] == "no-store", place
            stream = asyncio.create_task(ada.call("GET", "/v1/sync/stream"))
            await h.streams(1)
            h.services.hub.close_user(ada.id)
            assert (await stream).headers["cache-control"] == "no-store"

    run(scenario)


def test_responses_with_public_files_allow_caching(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            for place in ("/", "/schema/files/start.js"):
                answer = await anonymous.get(place)
                # The page is an error if the app is not built.
                kept = "no-cache" if answer.status_code == 200 else "no-store"
                assert answer.headers["cache-control"] == kept, place

    run(scenario)
