"""Problem responses name the error in the request and what the server would accept instead."""

import pytest

from property.rows import session
from property.sync_wire import alone
from server.in_process_server import browser, check_problem, run, serve, with_token


def test_401_detail_distinguishes_invalid_token_from_signed_out_browser(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            answer = await with_token(h, "no-such-token").get("/v1/me")
            detail = check_problem(answer, 401, "SIGNED_OUT")["detail"]
            assert detail.startswith("This API token is unknown or revoked.")
            detail = check_problem(await browser(h).get("/v1/me"), 401, "SIGNED_OUT")["detail"]
            assert detail.startswith("You are signed out.")

    run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [("POST", "/v1/forget", "forget everything"), ("DELETE", "/v1/me", "leave for good")],
)
def test_problem_for_missing_confirmation_names_the_expected_body(tmp_path, method, path, sentence):
    async def scenario(ada):
        detail = check_problem(await ada.call(method, path, json={}), 400, "BAD_REQUEST")["detail"]
        assert f'send {{"confirm": "{sentence}"}}. Nothing was changed.' in detail
        detail = check_problem(await ada.call(method, path), 400, "BAD_REQUEST")["detail"]
        assert detail == "The body is missing."

    alone(tmp_path, scenario)


def test_problem_names_the_missing_body_field(tmp_path):
    async def scenario(ada):
        answer = await ada.call("POST", "/v1/search", json={"query": "apples"})
        assert check_problem(answer, 400, "BAD_REQUEST")["detail"] == "The body lacks `sessionId`."

    alone(tmp_path, scenario)


def test_problem_names_the_invalid_body_field(tmp_path):
    async def scenario(ada):
        answer = await ada.call("POST", "/v1/memories", json={"text": "Tea.", "sessionId": "a b"})
        assert check_problem(answer, 400, "BAD_REQUEST")["detail"].startswith(
            "`sessionId` must have 1 to 100 characters"
        )

    alone(tmp_path, scenario)


def test_problem_for_invalid_date_names_the_expected_format(tmp_path):
    async def scenario(ada):
        (row,) = await ada.push("sessions", session("s", createdAt="2026-11-21"))
        assert row["syncError"]["message"] == "`createdAt` must look like 2026-11-21T15:09:02.059Z."

    alone(tmp_path, scenario)


@pytest.mark.parametrize("session", ["", "not an id", "s1\n", "a/b", "x" * 101])
@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
def test_problem_names_the_invalid_session_id(tmp_path, path, session):
    async def scenario():
        async with serve(tmp_path) as h:
            ada = await h.person()
            answer = await ada.call("POST", path, json={"query": "roof", "sessionId": session})
            assert check_problem(answer, 400, "BAD_REQUEST")["detail"] == "`sessionId` is not an id."

    run(scenario)


@pytest.mark.parametrize("name", ["__proto__", "."])
def test_problem_for_reserved_id_names_the_rule(tmp_path, name):
    async def scenario(ada):
        (row,) = await ada.push("sessions", session(name))
        assert "not be `.`, `..` or a property name" in row["syncError"]["message"]
        assert "`__proto__`" in row["syncError"]["message"]

    alone(tmp_path, scenario)


@pytest.mark.parametrize(
    "parts",
    [[("file", (None, "text"))], [("file", ("a.txt", b"a")), ("file", ("b.txt", b"b"))]],
    ids=["no filename", "two files"],
)
def test_problem_explains_that_upload_needs_exactly_one_file(tmp_path, parts):
    async def scenario(ada):
        answer = await ada.call("POST", "/v1/documents", files=parts)
        detail = check_problem(answer, 400, "BAD_REQUEST")["detail"]
        assert (
            detail == "`file` must be one file: one part of that name, with a filename. Nothing was changed."
        )

    alone(tmp_path, scenario)


def test_memories_can_be_searched_without_a_query(tmp_path):
    async def scenario(ada):
        assert await ada.push("sessions", session("s")) == []
        said = {"text": "Tea is at four.", "sessionId": "s"}
        assert (await ada.call("POST", "/v1/memories", json=said)).status_code == 201
        answer = await ada.call("POST", "/v1/memories/search", json={"sessionId": "s"})
        assert [one["memory"]["text"] for one in answer.json()["results"]] == ["Tea is at four."]

    alone(tmp_path, scenario)
