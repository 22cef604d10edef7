"""What a refusal says: what is wrong with this very request, and what would do."""

import pytest

from property.rows import session
from property.wire import alone
from server.house import browser, house, refused, run, with_token


def test_a_token_that_is_no_good_is_called_that(tmp_path):
    async def scenario():
        async with house(tmp_path) as h:
            said = refused(await with_token(h, "no-such-token").get("/v1/me"), 401, "SIGNED_OUT")["detail"]
            assert said.startswith("This token is unknown or revoked.")
            said = refused(await browser(h).get("/v1/me"), 401, "SIGNED_OUT")["detail"]
            assert said.startswith("You are signed out here.")

    run(scenario)


@pytest.mark.parametrize(
    ("method", "path", "sentence"),
    [("POST", "/v1/forget", "forget everything"), ("DELETE", "/v1/me", "leave for good")],
)
def test_a_body_that_lacks_the_confirmation_is_told_what_to_send(tmp_path, method, path, sentence):
    async def scenario(ada):
        said = refused(await ada.call(method, path, json={}), 400, "BAD_REQUEST")["detail"]
        assert f'send {{"confirm": "{sentence}"}}. Nothing was changed.' in said
        said = refused(await ada.call(method, path), 400, "BAD_REQUEST")["detail"]
        assert said == "The body is missing."

    alone(tmp_path, scenario)


def test_a_body_that_lacks_a_field_is_told_which(tmp_path):
    async def scenario(ada):
        answer = await ada.call("POST", "/v1/search", json={"query": "apples"})
        assert refused(answer, 400, "BAD_REQUEST")["detail"] == "The body lacks `sessionId`."

    alone(tmp_path, scenario)


def test_a_field_of_a_body_that_does_not_fit_is_called_by_its_name(tmp_path):
    async def scenario(ada):
        answer = await ada.call("POST", "/v1/memories", json={"text": "Tea.", "sessionId": "a b"})
        assert refused(answer, 400, "BAD_REQUEST")["detail"].startswith(
            "`sessionId` must have 1 to 100 characters"
        )

    alone(tmp_path, scenario)


def test_a_row_with_a_wrong_date_is_told_how_one_looks(tmp_path):
    async def scenario(ada):
        (row,) = await ada.push("sessions", session("s", createdAt="2026-11-21"))
        assert row["syncError"]["message"] == "`createdAt` must look like 2026-11-21T15:09:02.059Z."

    alone(tmp_path, scenario)


@pytest.mark.parametrize("session", ["", "not an id", "s1\n", "a/b", "x" * 101])
@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
def test_a_session_id_that_is_none_is_called_that(tmp_path, path, session):
    async def scenario():
        async with house(tmp_path) as h:
            ada = await h.person()
            answer = await ada.call("POST", path, json={"query": "roof", "sessionId": session})
            assert refused(answer, 400, "BAD_REQUEST")["detail"] == "`sessionId` is not an id."

    run(scenario)
