"""Response formats of endpoints, and the error messages for users.

The files in `llm/` are responses of real endpoints.
"""

from pathlib import Path

import pytest

from server.chat.assistant_server import CANARY, ask, read_answer, scenario_of, text_of
from server.in_process_server import check_problem
from server.scripted_llm import Rule

FORMS = Path(__file__).parent / "llm"
PLAIN = 'data: {"choices":[{"delta":{"content":"Hello world"}}]}\n\ndata: [DONE]\n\n'
TWO_CHOICES = (
    'data: {"choices":[{"index":1,"delta":{"content":"Bye"},"finish_reason":"stop"}]}\n'
    'data: {"choices":[{"index":1,"delta":{"content":"!"}},{"index":0,"delta":{"content":"Hello world"}}]}\n'
    "data: [DONE]\n"
)


def form(name: str) -> str:
    return (FORMS / name).read_bytes().decode()


def of_type(kind: str, raw: str) -> Rule:
    return Rule(raw=raw, headers={"Content-Type": kind})


@pytest.mark.parametrize(
    "rule, text",
    [
        (Rule(raw=form("llm-think-noopen.sse")), "Hello world"),
        (Rule(raw=form("llm-magistral.sse")), "Hello world"),
        (Rule(raw=form("llm-thinking-tag.sse")), "Hello world"),
        (Rule(raw=form("llm-bom.sse")), "Hello world"),
        (Rule(raw=form("llm-surrogates.sse")), "Hello \ufffd\ufffd world"),
        (of_type("application/json", form("llm-non-stream.json")), "Hello world"),
        (of_type("application/json", "{\n" + form("llm-non-stream.json")[1:]), "Hello world"),
        (Rule(raw=form("llm-non-stream.json")), "Hello world"),
        (of_type("text/plain; charset=utf-8", PLAIN), "Hello world"),
        (of_type("application/octet-stream", PLAIN), "Hello world"),
        (Rule(raw=TWO_CHOICES), "Hello world"),
        (Rule(raw=PLAIN.removesuffix("\n\n")), "Hello world"),
    ],
)
def test_answer_text_is_parsed_from_every_endpoint_format(tmp_path, rule, text):
    async def scenario(h, model, ada):
        events = await read_answer(ada)
        assert (text_of(events), events[-1]) == (text, ("done", {"finish": "stop"}))

    scenario_of(tmp_path, scenario, rule)


@pytest.mark.parametrize(
    "rule, words",
    [
        (Rule(raw=form("llm-reasoning-length.sse")), "tokens of an answer"),
        (Rule(say=["<think>and think"], finish="length"), "tokens of an answer"),
        (Rule(say=[], finish="content_filter"), "content filter"),
        (Rule(raw=form("llm-error-vllm.sse")), "internal error"),
        (Rule(raw='error: {"code":500}\n'), "internal error"),
        (Rule(raw="Hello world\n"), "an invalid reply"),
    ],
)
def test_failed_answer_reports_the_reason_given_by_endpoint(tmp_path, rule, words):
    async def scenario(h, model, ada):
        name, failure = (await read_answer(ada))[-1]
        assert (name, failure["code"]) == ("failed", "ASSISTANT_FAILED") and words in failure["message"]

    scenario_of(tmp_path, scenario, rule)


def test_content_filter_rejection_is_reported(tmp_path):
    async def scenario(h, model, ada):
        detail = check_problem(await ask(ada, CANARY), 502, "ASSISTANT_FAILED")["detail"]
        assert "content filter" in detail and CANARY not in detail

    scenario_of(
        tmp_path, scenario, Rule(status=400, raw=f'{{"error":{{"code":"content_filter","m":"{CANARY}"}}}}')
    )


@pytest.mark.parametrize("status", [400, 500])
def test_rejected_system_prompt_moves_into_user_message(tmp_path, status):
    async def scenario(h, model, ada):
        assert "What is the rent?" in text_of(await read_answer(ada))
        first, second = (asked.body["messages"] for asked in model.requests)
        assert [message["role"] for message in second] == ["user"]
        assert second[0]["content"] == "\n\n".join(message["content"] for message in first)

    merged = Rule(when="\n\nWhat is the rent?", say=["You asked: What is the rent?"])
    scenario_of(tmp_path, scenario, merged, Rule(status=status, raw="System role not supported"))


def test_endpoint_that_keeps_rejecting_roles_is_retried_once(tmp_path):
    async def scenario(h, model, ada):
        check_problem(await ask(ada), 502, "ASSISTANT_FAILED")
        assert len(model.requests) == 2

    scenario_of(tmp_path, scenario, Rule(status=400, raw="System role not supported"))
