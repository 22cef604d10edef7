"""Operator endpoints: health, readiness, metrics, the API page, and problem responses for unknown
requests.
"""

import asyncio
import re
import threading

import httpx
import pytest

from server.in_process_server import MODELS, browser, run, serve
from vademecum.app import create_app
from vademecum.http.routes.operations import health_metrics
from vademecum.settings import Secret, Settings
from wait_until import soon

PLACES = [
    "/nowhere",
    "/v1",
    "/v1/nowhere",
    "/v1/sync/documents",
    "/v1/sync/documents/1",
    "/v1/sync/documents/zero/pull",
    "/schema/nowhere",
    "/schema/files/nowhere.js",
    "/schema/files/../../../settings.py",
    "/schema/files/%00",
    "/schema/files/a%00b.js",
    "/schema/openapi.yaml",
    "/favicon.ico",
    "/v1/documents/a/b/c",
    "/%00",
    "/v1/%F0%9F%90%88",
]


def is_problem(answer):
    assert answer.headers["content-type"].startswith("application/problem+json"), answer.headers
    body = answer.json()
    assert body["error"] is True and body["status"] == answer.status_code
    assert re.fullmatch(r"[A-Z_]+", body["code"]) and body["title"] and body["detail"] and body["type"]
    return True


def test_health_route_needs_no_credentials(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h, "203.0.113.9") as anonymous:
            answer = await anonymous.get("/health")
            assert (answer.status_code, answer.json()) == (200, {"alive": True})

    run(scenario)


def test_readiness_names_store_index_and_model(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            await h.services.inference.get()
            answer = await anonymous.get("/ready")
            assert answer.status_code == 200
            assert answer.json() == {"ready": True, "store": "ok", "index": "ok", "model": None, "fenced": 0}
        async with serve(tmp_path / "two", model=MODELS) as h, browser(h) as anonymous:
            await h.services.inference.get()
            assert (await anonymous.get("/ready")).json()["model"] == "all-minilm-l6-v2"

    run(scenario)


def test_readiness_is_503_while_data_folder_is_unwritable(tmp_path):
    async def scenario():
        data, away = tmp_path / "data", tmp_path / "away"
        async with serve(data) as h, browser(h) as anonymous:
            await h.services.inference.get()
            assert (await anonymous.get("/ready")).status_code == 200
            data.rename(away)
            answer = await anonymous.get("/ready")
            assert answer.status_code == 503
            assert answer.json()["ready"] is False and "failed" in answer.json()["index"]
            assert (await anonymous.get("/health")).status_code == 200, (
                "the server must be alive although it is not ready"
            )
            away.rename(data)
            assert (await anonymous.get("/ready")).status_code == 200
            assert not list(data.glob(".probe*")), "the check must leave no file"

    run(scenario)


def test_readiness_is_503_when_store_is_unreadable(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            await h.services.inference.get()
            await h.services.instance.run(
                lambda cursor: cursor.execute(f"DROP TABLE {h.services.accounts._alias}.main.accounts")
            )
            answer = await anonymous.get("/ready")
            assert answer.status_code == 503 and "failed" in answer.json()["store"]

    run(scenario)


def test_server_with_damaged_model_is_not_ready_but_stops_cleanly(tmp_path):
    async def scenario():
        models = tmp_path / "models" / "all-minilm-l6-v2"
        models.mkdir(parents=True)
        for file in (MODELS / "all-minilm-l6-v2").iterdir():
            content = file.read_bytes() if file.suffix != ".onnx" else b"no graph at all"
            (models / file.name).write_bytes(content)
        app = create_app(Settings(data=tmp_path / "data", models=models.parent))
        async with app.lifespan():
            services = app.state.services
            await soon(services.inference._opening.done)
            transport = httpx.ASGITransport(app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as anonymous:
                answer = await anonymous.get("/ready")
                assert answer.status_code == 503 and answer.json()["model"] is None

    run(scenario)


def test_metrics_describe_the_server_without_user_data(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as machine:
            ada = await h.person()
            await ada.upload("lease.txt", "The tenant gives notice three months before.")
            secret = {"Authorization": f"Local {h.services.local_secret}"}
            answer = await machine.get("/metrics", headers=secret)
            assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
            lines = [line for line in answer.text.splitlines() if line and not line.startswith("#")]
            values = {line.split()[0]: float(line.split()[1]) for line in lines}
            assert values["vademecum_accounts"] == 1 and values["vademecum_attached_files"] == 1
            assert {f"vademecum_jobs_{job}" for job in ("index", "embed", "erase")} <= values.keys()
            helped = re.findall(r"^# (?:HELP|TYPE) (\S+)", answer.text, re.M)
            assert values.keys() <= set(helped), "each metric must have a help text and a type"
            assert ada.id not in answer.text and "lease" not in answer.text

    run(scenario)


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "10.0.0.1", "203.0.113.9"])
def test_metrics_require_administrator_or_metrics_token(tmp_path, address):
    async def scenario():
        async with (
            serve(tmp_path, metrics_token=Secret("scraping-secret")) as h,
            browser(h, address) as somebody,
        ):
            ada, admin = await h.person(), await h.person()
            await h.services.account_service.change_admin(h.services.accounts.accounts[admin.id], admin=True)
            for words, status in (
                ("", 401),
                ("Bearer wrong", 401),
                ("Bearer ", 401),
                (ada.client.headers["Authorization"], 403),
                (admin.client.headers["Authorization"], 200),
                ("Bearer scraping-secret", 200),
            ):
                answer = await somebody.get("/metrics", headers={"Authorization": words} if words else {})
                assert answer.status_code == status, words
                assert status == 200 or is_problem(answer)
        async with serve(tmp_path) as h, browser(h, address) as somebody:
            for words in ("Bearer ", "Bearer", "Bearer scraping-secret"):
                assert (await somebody.get("/metrics", headers={"Authorization": words})).status_code == 401

    run(scenario)


def test_local_routes_require_loopback_and_the_secret(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            right = {"Authorization": f"Local {h.services.local_secret}"}
            cases = [("127.0.0.1", right, 200), ("203.0.113.9", right, 401), ("127.0.0.1", {"Authorization": "Local x"}, 401),
                     ("127.0.0.1", {"Authorization": "Local "}, 401)]  # fmt: skip
            for address, headers, status in cases:
                async with browser(h, address) as somebody:
                    assert (await somebody.get("/v1/accounts", headers=headers)).status_code == status, (
                        address,
                        headers,
                    )
            admin = await h.person()
            body = {"path": str(tmp_path / "copy")}
            refused = await admin.call("POST", "/v1/local/backup", json=body)
            assert refused.status_code == 403 and is_problem(refused) and not (tmp_path / "copy").exists()

    run(scenario)


def test_unknown_path_is_a_problem_for_every_method(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h) as stranger:
            ada = await h.person()
            wrong = []
            for place in PLACES:
                for client in (stranger, ada.client):
                    for method in ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
                        answer = await client.request(method, place)
                        allowed = method == "OPTIONS" and answer.status_code == 204
                        try:
                            assert allowed or (400 <= answer.status_code < 500 and is_problem(answer))
                        except (AssertionError, ValueError):
                            wrong.append(
                                (
                                    method,
                                    place,
                                    answer.status_code,
                                    answer.headers.get("content-type"),
                                    answer.text[:80],
                                )
                            )
            assert wrong == []

    run(scenario)


def test_unsupported_method_gets_405_problem(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            for method, path in (
                ("POST", "/health"),
                ("DELETE", "/v1/search"),
                ("PUT", "/v1/sync/facts/0/push"),
            ):
                answer = await ada.call(method, path)
                assert answer.status_code == 405 and is_problem(answer)
                assert answer.json()["code"] == "METHOD_NOT_ALLOWED"

    run(scenario)


def test_schema_lists_public_routes_and_hides_local_routes(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h, "203.0.113.9") as anonymous:
            answer = await anonymous.get("/schema/openapi.json")
            assert answer.status_code == 200
            body = answer.json()
            assert body["openapi"].startswith("3.1") and body["info"]["title"] == "Vademecum"
            for path in ("/health", "/ready", "/v1/documents", "/v1/search", "/v1/forget", "/v1/me"):
                assert path in body["paths"], path
            assert any(path.startswith("/v1/sync/{name}") for path in body["paths"])
            assert not any(path.startswith(("/v1/local", "/metrics")) for path in body["paths"])
            assert body["components"]["securitySchemes"]["token"]["scheme"] == "bearer"
            undescribed = [
                f"{method} {path}"
                for path, methods in body["paths"].items()
                for method, operation in methods.items()
                if not operation.get("summary")
            ]
            assert undescribed == []

    run(scenario)


def test_api_page_loads_no_resource_from_other_origins(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h, browser(h, "203.0.113.9") as anonymous:
            page = await anonymous.get("/schema")
            assert page.status_code == 200 and page.headers["content-type"].startswith("text/html")
            policy = page.headers["content-security-policy"]
            assert "default-src 'self'" in policy and "script-src 'self' 'wasm-unsafe-eval'" in policy
            assert re.findall(r"https?:|['\"]//", page.text) == []
            asset_urls = re.findall(r"(?:src|href)=\"([^\"]+)\"", page.text)
            files = [place for place in asset_urls if not place.startswith("data:")]
            assert len(files) >= 3 and all(place.startswith("/schema/files/") for place in files)
            for place in files:
                answer = await anonymous.get(place)
                assert answer.status_code == 200 and len(answer.content) > 50, place
                kind = "javascript" if place.endswith(".js") else "css"
                assert kind in answer.headers["content-type"]
            start = (await anonymous.get("/schema/files/start.js")).text
            assert re.findall(r"https?:|['\"]//", start) == []
            assert '"/schema/openapi.json"' in start and "validatorUrl: null" in start
            body = (await anonymous.get("/schema/openapi.json")).json()
            assert [server["url"] for server in body.get("servers", [])] in ([], ["/"])

    run(scenario)


def test_oversized_body_gets_413_problem(tmp_path):
    async def scenario():
        async with serve(tmp_path, body_max=1000) as h:
            ada = await h.person()
            answer = await ada.call("POST", "/v1/sync/facts/0/push", content=b"[" + b" " * 2000 + b"]")
            assert answer.status_code == 413 and is_problem(answer) and answer.json()["code"] == "TOO_LARGE"
            assert "1,000 bytes" in answer.json()["detail"]

    run(scenario)


def test_concurrent_readiness_checks_of_blocked_store_share_one_thread(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            with h.services.accounts._lock:
                checks = [asyncio.create_task(h.services.accounts.ping()) for _ in range(20)]
                await asyncio.sleep(0)  # let each check pass its call to the thread
                await asyncio.sleep(0)
                async with asyncio.timeout(20):
                    assert await h.services.instance.run(
                        lambda c: c.execute("SELECT 1").fetchone(), "ada"
                    ) == (1,)
                assert h.services.instance._threads.waiting() == 0
            await asyncio.gather(*checks)

    run(scenario)


def test_readiness_check_responds_in_time_while_storage_hangs(tmp_path, monkeypatch):
    assert 2 * health_metrics.READY_TIMEOUT_S < 15, "two consecutive checks must fit into a probe's timeout"
    monkeypatch.setattr(health_metrics, "READY_TIMEOUT_S", 0.05)
    may_end = threading.Event()
    monkeypatch.setattr(health_metrics, "_write_probe", lambda parts: may_end.wait(60))

    async def scenario():
        async with serve(tmp_path) as h, browser(h) as anonymous:
            try:
                with h.services.accounts._lock:
                    async with asyncio.timeout(20):
                        for _ in range(2):
                            answer = await anonymous.get("/ready")
                            assert answer.status_code == 503
                            body = answer.json()
                            assert (
                                body["store"]
                                == "failed: accounts.duckdb cannot be read or written (TimeoutError)"
                            )
                            assert body["index"] == "failed: the data folder cannot be written (TimeoutError)"
            finally:
                may_end.set()
            assert (await anonymous.get("/ready")).json()["store"] == "ok"

    run(scenario)
