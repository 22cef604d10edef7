"""Answers end and release their resources when the client disconnects, the server stops or a limit is reached."""

import asyncio
from contextlib import closing, suppress

import httpx
import pytest

from server.chat.assistant_server import (
    ask,
    last_event,
    read_answer,
    scenario_of,
    stream_answer,
    text_of,
    wait_for_first_word,
)
from server.in_process_server import check_problem
from server.listening_server import listen_on_port
from server.scripted_llm import Rule
from vademecum.engines.llm.client import AnswerBounds, Endpoint
from vademecum.errors import AnswerTooSlow, AssistantUnreachable, Stopping
from vademecum.services.chat.answer import Done
from vademecum.services.chat.prompt_context import Question, Requester
from vademecum.settings import Rates, default_tiers
from wait_until import soon


def asking(h, person, query="go on"):
    """Return arguments for `Answers.begin`, which starts an answer without HTTP."""
    return Requester(person.id, "JIGGA", default_tiers()["JIGGA"]), Question(query, "s1", None, "")


ENDLESS = Rule(say=["word "], pause_s=0.02, ends="never")


@pytest.mark.parametrize("rule", [ENDLESS, Rule(say=["word "], ends="silent")], ids=["talking", "silent"])
def test_client_disconnect_cancels_the_model_request(tmp_path, rule):
    async def scenario(h, model, ada):
        async with listen_on_port(h.app) as url:
            async with stream_answer(url, ada) as lines:
                await wait_for_first_word(lines)
                assert (model.disconnects, h.services.answers.count()) == (0, 1)
            await soon(lambda: model.disconnects == 1 and h.services.answers.count() == 0)

    scenario_of(tmp_path, scenario, rule)


def test_client_disconnect_before_first_token_cancels_the_model_request(tmp_path):
    async def scenario(h, model, ada):
        async with listen_on_port(h.app) as url:
            headers = {"Authorization": ada.client.headers["Authorization"]}
            async with httpx.AsyncClient(base_url=url, headers=headers) as client:
                body = {"query": "go on", "sessionId": "s1"}
                asked = asyncio.create_task(client.post("/v1/answer", json=body, timeout=60))
                await soon(lambda: model.requests)
                asked.cancel()
                with suppress(asyncio.CancelledError):
                    await asked
            await soon(lambda: model.disconnects == 1 and h.services.answers.count() == 0)

    scenario_of(tmp_path, scenario, Rule(first_s=60))


def test_server_stop_ends_running_answers_with_an_error_event(tmp_path):
    async def scenario(h, model, ada):
        async with listen_on_port(h.app) as url, stream_answer(url, ada) as lines:
            await wait_for_first_word(lines)
            h.services.answers.stop()
            name, failure = await last_event(lines)
            assert (name, failure["code"]) == ("failed", "STOPPING") and "kept" not in failure["message"]
            await soon(lambda: model.disconnects == 1)
            check_problem(await ask(ada), 503, "STOPPING")

    scenario_of(tmp_path, scenario, ENDLESS, assistant_timeout_s=30)


def test_stalled_client_releases_its_answer_slot_after_timeout(tmp_path):
    async def scenario(h, model, ada):
        answering = h.services.answers.begin(*asking(h, ada))
        await soon(lambda: h.services.answers.count() == 0 and model.disconnects == 1)
        with pytest.raises(AnswerTooSlow):
            while True:  # the events before the failure are returned first
                assert not isinstance(await answering.next(), Done)

    scenario_of(tmp_path, scenario, Rule(say=["word "], ends="never"), assistant_timeout_s=1)


def test_answer_without_first_token_reports_server_stop(tmp_path):
    async def scenario(h, model, ada):
        answering = h.services.answers.begin(*asking(h, ada))
        h.services.answers.stop()
        async with asyncio.timeout(60):
            with pytest.raises(Stopping):
                await answering.next()
        assert model.requests == []

    scenario_of(tmp_path, scenario)


def test_token_revocation_ends_running_answers_of_the_token(tmp_path):
    async def scenario(h, model, ada):
        async with listen_on_port(h.app) as url, stream_answer(url, ada) as lines:
            await wait_for_first_word(lines)
            (token,) = (await ada.call("GET", "/v1/tokens")).json()
            await ada.call("DELETE", f"/v1/tokens/{token['id']}")
            name, failure = await last_event(lines)
            assert (name, failure["code"]) == ("failed", "SIGNED_OUT")
            await soon(lambda: model.disconnects == 1)

    scenario_of(tmp_path, scenario, ENDLESS, assistant_timeout_s=30)


def test_concurrent_answers_are_limited_per_account(tmp_path):
    async def scenario(h, model, ada):
        bob = await h.person()
        async with listen_on_port(h.app) as url:
            async with (
                stream_answer(url, ada) as one,
                stream_answer(url, ada) as two,
                stream_answer(url, ada) as three,
            ):
                for lines in (one, two, three):
                    await wait_for_first_word(lines)
                answer = await ask(ada)
                check_problem(answer, 429, "RATE_LIMITED")
                assert int(answer.headers["retry-after"]) > 0
                assert text_of(await read_answer(bob, "short")) == "Yes."
            await soon(lambda: h.services.answers.count() == 0)
            assert text_of(await read_answer(ada, "short")) == "Yes."

    scenario_of(tmp_path, scenario, Rule(when="short", say=["Yes."]), ENDLESS, assistant_timeout_s=30)


def test_accounts_take_turns_at_a_serial_endpoint(tmp_path):
    """Ada's waiting questions follow those of others, and a question whose client leaves gives up its turn."""

    async def scenario(h, model, ada):
        bob, cleo = await h.person(), await h.person()
        order = []

        async def question(person, name):
            await read_answer(person, name)
            order.append(name)

        async def begin(person, name):
            task = asyncio.create_task(question(person, name))
            await soon(lambda: h.services.answers.count() == len(tasks) + 1)
            return task

        tasks, queue = [], h.services.answers.endpoint._slots._queue
        tasks.append(await begin(ada, "1"))
        await soon(lambda: len(model.requests) == 1)
        for person, name in ((ada, "2"), (ada, "3"), (bob, "left"), (bob, "bob's"), (cleo, "cleo's")):
            tasks.append(await begin(person, name))
            await soon(lambda: len(queue) == len(tasks) - 1)
        tasks[3].cancel()
        await soon(lambda: len(queue) == 4)
        for number in range(1, 6):
            await soon(lambda number=number: len(model.requests) == number)
            model.release_answer()
            await soon(lambda number=number: len(order) == number)
        assert order == ["1", "bob's", "cleo's", "2", "3"]

    scenario_of(tmp_path, scenario, Rule(held=True, say=["Yes."]), assistant_parallel=1)


def test_answers_are_limited_separately_from_other_requests(tmp_path):
    async def scenario(h, model, ada):
        headers = {"Authorization": ada.client.headers["Authorization"]}
        far = httpx.ASGITransport(h.app, client=("203.0.113.9", 1))
        async with httpx.AsyncClient(transport=far, base_url="http://test", headers=headers) as client:
            body = {"query": "rent", "sessionId": "s1"}
            answers = [await client.post("/v1/answer", json=body) for _ in range(3)]
            assert [answer.status_code for answer in answers] == [200, 200, 429]
            assert (await client.get("/v1/assistant")).status_code == 200

    scenario_of(tmp_path, scenario, rates=Rates(answer=2))


def test_invalid_question_is_rejected_before_calling_the_model(tmp_path):
    async def scenario(h, model, ada):
        check_problem(await ask(ada, "x" * 10_001), 400, "BAD_REQUEST")
        check_problem(await ask(ada, "  "), 400, "BAD_REQUEST")
        check_problem(await ask(ada, systemPrompt="word " * 30_000), 413, "TOO_LARGE")
        assert model.requests == []

    scenario_of(tmp_path, scenario)


async def drip(reader, writer):
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    with closing(writer), suppress(ConnectionError):
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.05)


async def test_endpoint_check_times_out_if_model_list_arrives_too_slowly():
    async with await asyncio.start_server(drip, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        endpoint = Endpoint(f"http://127.0.0.1:{port}", "m", "", AnswerBounds(5, 0.5, 100))
        async with asyncio.timeout(60):
            with pytest.raises(AssistantUnreachable):
                await endpoint.check()
        await endpoint.close()
