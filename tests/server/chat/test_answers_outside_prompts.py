"""Answers without a model, which are quotation answers and "not found" answers.

Users can search for them, but the server never sends them to a model.
"""

from pathlib import Path
from typing import Any

import pytest

from property.rows import episode, project, session
from server.chat.assistant_server import read_answer
from server.chat.prompt_canaries import read_context
from server.in_process_server import Person, serve
from server.memory.extracting_server import reply, scenario_of, wait_until_finished
from server.scripted_llm import Rule
from vademecum.model.chat.answers import NOT_FOUND

QUESTION = "Where does the canary sing?"
QUOTED = "> The canary sings in the quokka vault.\n>\n> [1]"
MISSED = f"{NOT_FOUND} Searched: quokka-canary.pdf."
ORDINARY = "The canary sings in the garden."
UNTOLD = {"quoted": {"model": "quotes", "aiResponse": QUOTED}, "missed": {"aiResponse": MISSED}}
MCP = {"Accept": "application/json, text/event-stream"}


def asked(row_id: str, session_id: str, **more: Any) -> dict[str, Any]:
    return episode(row_id, session_id, userMessage=f"{QUESTION} ({row_id})", **more)


async def create_answers(ada: Person, *, ordinary: bool = True) -> None:
    """Create a project with two sessions and both kinds of answers without a model.

    `ordinary`: also create an answer of a model.
    """
    await ada.add("projects", project("p1", name="Birds"))
    await ada.add("sessions", session("s1", projectId="p1"), session("s2", projectId="p1"))
    await ada.add("episodes", *(asked(f"{name}2", "s2", **more) for name, more in UNTOLD.items()))
    await ada.add("episodes", *(asked(f"{name}1", "s1", **more) for name, more in UNTOLD.items()))
    if ordinary:
        await ada.add("episodes", asked("plain", "s2", aiResponse=ORDINARY))


async def called(ada: Person, tool: str, **arguments: Any) -> str:
    params = {"name": tool, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = await ada.call("POST", "/mcp", json=body, headers=MCP)
    assert answer.status_code == 200 and "result" in answer.text, answer.text
    return answer.text


@pytest.mark.parametrize("model", [False, True])
async def test_answers_without_a_model_are_searchable_but_never_in_prompts(
    tmp_path: Path, model: bool
) -> None:
    async with serve(tmp_path, model=model) as h:
        ada = await h.person()
        await create_answers(ada)
        await h.drain_jobs(ada)
        context = await read_context(ada, "s1", QUESTION)
        assert "quokka" not in context["prompt"] and ORDINARY in context["prompt"]
        assert f"User: {QUESTION} (quoted1)\n" in context["prompt"], (
            "the user's question must stay in the conversation"
        )
        assert [one["id"] for one in context["scope"]["recalled"]] == ["plain"]
        for tool, arguments in (("search", {"query": QUESTION}), ("recent_context", {})):
            assert "quokka" not in await called(ada, tool, project="Birds", **arguments)
        found = await ada.call("GET", "/v1/episodes/search", params={"q": "quokka", "sessionId": "s1"})
        ids = {one["id"] for one in found.json()["results"]}
        assert {"quoted1", "quoted2", "missed1", "missed2"} <= ids


def test_answers_without_a_model_are_neither_extracted_nor_summarized(tmp_path: Path) -> None:
    async def scenario(h: Any, model: Any, ada: Person) -> None:
        await create_answers(ada)
        jobs = (await wait_until_finished(ada))["jobs"]
        assert {job["subject"] for job in jobs} == {"episodes/plain"}
        for path in ("/v1/projects/p1/summarize", "/v1/sessions/s2/summarize"):
            assert (await ada.call("POST", path)).status_code == 200
        await read_answer(ada, QUESTION)
        assert "quokka" not in str([asked.body for asked in model.requests])
        assert str([asked.body for asked in model.requests]).count("in the garden") == 4

    scenario_of(tmp_path, scenario, Rule(when="The user said", say=reply(memories=[])), Rule(say=["Well."]))


def test_quotation_replaced_by_model_answer_is_extracted(tmp_path: Path) -> None:
    async def scenario(h: Any, model: Any, ada: Person) -> None:
        await create_answers(ada, ordinary=False)
        assert (await wait_until_finished(ada))["jobs"] == [] and model.requests == []
        before = (await ada.live("episodes"))["quoted2"]
        after = {**before, "model": "scripted", "aiResponse": ORDINARY}
        assert await ada.push("episodes", after, assumed=before) == []
        assert [job["subject"] for job in (await wait_until_finished(ada))["jobs"]] == ["episodes/quoted2"]
        assert ORDINARY in model.requests[0].question

    scenario_of(tmp_path, scenario, Rule(say=reply(memories=[])))


async def test_quotation_answers_do_not_displace_model_answers_in_prompts(tmp_path: Path) -> None:
    async with serve(tmp_path) as h:
        ada = await h.person()
        await create_answers(ada, ordinary=False)
        long = "It was said at length that the birds of the house are quiet in winter. " * 3
        await ada.add("episodes", asked("plain", "s2", aiResponse=f"{long}{ORDINARY}"))
        quotes = (asked(f"q{n}", "s2", model="quotes", aiResponse="> canary, sing!") for n in range(150))
        await ada.add("episodes", *quotes)
        context = await read_context(ada, "s1", QUESTION)
        assert ORDINARY in context["prompt"] and "sing!" not in context["prompt"]
