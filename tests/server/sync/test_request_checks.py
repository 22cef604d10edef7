"""Sync routes check limits, epoch, schema version and body size before they read rows. Errors are problem responses."""

from dataclasses import replace

import pytest

from property.rows import fact
from property.sync_wire import alone, epoch
from server.in_process_server import check_problem
from vademecum.model.schema.collections import COLLECTIONS, Registry


@pytest.mark.parametrize("limit", ["0", "1001", "abc", "-1", "1.5", ""])
def test_pull_limit_out_of_bounds_is_rejected(tmp_path, limit):
    async def scenario(ada):
        check_problem(await ada.call("GET", f"/v1/sync/facts/0/pull?limit={limit}"), 400, "BAD_REQUEST")

    alone(tmp_path, scenario)


@pytest.mark.parametrize("limit", [1, 1000])
def test_pull_limit_at_its_bounds_is_accepted(tmp_path, limit):
    async def scenario(ada):
        assert (await ada.call("GET", f"/v1/sync/facts/0/pull?limit={limit}")).status_code == 200

    alone(tmp_path, scenario)


def test_pull_and_push_with_wrong_epoch_are_rejected(tmp_path):
    async def scenario(ada):
        body = [{"newDocumentState": fact("f")}]
        check_problem(await ada.call("GET", "/v1/sync/facts/0/pull?lwt=1&id=other"), 409, "EPOCH")
        answer = await ada.call("POST", "/v1/sync/facts/0/push?epoch=other", json=body)
        check_problem(answer, 409, "EPOCH")
        assert await ada.pull("facts") == []
        answer = await ada.call("POST", f"/v1/sync/facts/0/push?epoch={await epoch(ada)}", json=body)
        assert answer.json() == [] and len(await ada.pull("facts")) == 1

    alone(tmp_path, scenario)


@pytest.mark.parametrize("verb", ["pull", "push", "pullStream"])
def test_requests_with_wrong_schema_version_are_rejected(tmp_path, verb):
    registry = Registry([replace(c, version=1) if c.name == "facts" else c for c in COLLECTIONS])

    async def scenario(ada):
        method = "POST" if verb == "push" else "GET"
        more = {"json": []} if verb == "push" else {}
        newer = await ada.call(method, f"/v1/sync/facts/2/{verb}", **more)
        check_problem(newer, 503, "TOO_NEW")
        assert int(newer.headers["Retry-After"]) > 0
        check_problem(await ada.call(method, f"/v1/sync/facts/0/{verb}", **more), 426, "OUTDATED")

    alone(tmp_path, scenario, registry=registry)


def test_every_sync_error_is_a_problem_response(tmp_path):
    async def scenario(ada):
        for method, path, status, code in [
            ("GET", "/v1/sync/nothing/0/pull", 404, "NOT_FOUND"),
            ("GET", "/v1/sync/facts/x/pull", 404, "NOT_FOUND"),
            ("GET", "/v1/nowhere", 404, "NOT_FOUND"),
            ("PUT", "/v1/sync/facts/0/push", 405, "METHOD_NOT_ALLOWED"),
            ("POST", "/v1/sync/facts/0/push", 400, "BAD_REQUEST"),
            ("GET", "/v1/sync/facts/0/pull?lwt=x", 400, "BAD_REQUEST"),
        ]:
            check_problem(await ada.call(method, path), status, code)
        ada.client.headers["Authorization"] = "Bearer nobody"
        for method, path in [("GET", "/v1/sync/facts/0/pull"), ("POST", "/v1/sync/facts/0/push")]:
            check_problem(await ada.call(method, path), 401, "SIGNED_OUT")

    alone(tmp_path, scenario)


def test_push_body_above_32_mib_is_rejected(tmp_path):
    async def scenario(ada):
        body = b"[" + b" " * (32 * 2**20) + b"]"
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=body)
        check_problem(answer, 413, "TOO_LARGE")
        answer = await ada.call("POST", "/v1/sync/facts/0/push", content=b"[" + b" " * (31 * 2**20) + b"]")
        assert answer.json() == []

    alone(tmp_path, scenario)
