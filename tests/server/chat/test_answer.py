"""`POST /v1/answer`: the server asks a language model and streams its answer to a question of a session."""

import pytest

from property.rows import session, turn
from server.chat.assistant_server import (
    CANARY,
    KEY,
    ask,
    events_of,
    last_event,
    read_answer,
    scenario_of,
    stream_answer,
    text_of,
)
from server.in_process_server import check_problem, serve
from server.listening_server import listen_on_port
from server.scripted_llm import MODEL, Rule
from vademecum.model.chat.prompt import NOT_FOUND


def test_answer_returns_the_context_given_to_the_model(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("sessions", session("s1"))
        lease = (await ada.upload("lease.txt", "The rent of the mill is R9,000.")).json()["document"]
        await h.drain_jobs(ada)
        context = (await ada.call("POST", "/v1/context", json={"query": "rent", "sessionId": "s1"})).json()
        events = await read_answer(ada, "rent")
        assert text_of(events) == "It is R9,000." and events[-1] == ("done", {"finish": "stop"})
        summary = events[0][1]
        (cited,) = summary["citations"]
        assert cited == {
            "n": 1, "documentId": lease["id"], "filename": "lease.txt", "block": 0, "chunkIndex": 0,
            "text": "The rent of the mill is R9,000.",
        }  # fmt: skip
        assert summary["model"] == MODEL
        assert {name: summary[name] for name in ("tokens", "budget", "dropped", "scope")} == {
            name: context[name] for name in ("tokens", "budget", "dropped", "scope")
        }
        (request,) = model.requests
        assert request.path == "/v1/chat/completions" and request.headers["authorization"] == f"Bearer {KEY}"
        assert request.body == {
            "model": MODEL,
            "messages": [{"role": "system", "content": context["prompt"]}, {"role": "user", "content": "rent"}],
            "max_tokens": context["budget"]["response"],
            "stream": True,
        }  # fmt: skip

    scenario_of(tmp_path, scenario, Rule(say=["It is ", "R9,000."]))


def test_citation_numbers_match_the_order_of_prompt_passages(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("sessions", session("s1"))
        for mill in range(4):
            words = " ".join(f"The rent of mill {mill} in year {year} is R{year},000." for year in range(300))
            await ada.upload(f"lease{mill}.txt", words)
        summary = (await read_answer(ada, "rent of the mill"))[0][1]
        quoted = [line for line in model.requests[0].system.split("\n") if line.startswith("Source:")]
        assert [f"Source: {cited['filename']} [{cited['n']}]" for cited in summary["citations"]] == quoted
        assert quoted and summary["dropped"]["passages"], (
            "the test needs passages that fit and passages that do not"
        )

    scenario_of(tmp_path, scenario)


def test_prompt_excludes_the_answered_and_later_turns(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("sessions", session("s1"))
        await ada.push("episodes", *(turn(number) for number in range(1, 6)))
        await ada.push("episodes", {**turn(1), "aiResponse": "anew"}, assumed=turn(1))
        turns_in_prompt = {}
        for episode_id in (None, "e3", "e1", "not-here-yet"):
            await read_answer(ada, **({"episodeId": episode_id} if episode_id else {}))
            system_prompt = model.requests[-1].system
            turns_in_prompt[episode_id] = [n for n in range(1, 6) if f"User: question {n}\n" in system_prompt]
        everything = [1, 2, 3, 4, 5]
        assert turns_in_prompt == {None: everything, "e3": [1, 2], "e1": [], "not-here-yet": everything}
        check_problem(await ask(ada, episodeId="not an id"), 400, "BAD_REQUEST")

    scenario_of(tmp_path, scenario)


def test_prompt_for_old_turn_contains_turns_before_it_despite_many_later_turns(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("sessions", session("s1"))
        await ada.push("episodes", turn(1), turn(2))
        later = turn(3, aiResponse="word " * 200)
        await ada.push("episodes", *({**later, "id": f"l{n}"} for n in range(450)))
        await read_answer(ada, episodeId="e2")
        assert "User: question 1\n" in model.requests[-1].system
        assert "question 2" not in model.requests[-1].system and "question 3" not in model.requests[-1].system

    scenario_of(tmp_path, scenario)


@pytest.mark.parametrize(
    "rule, status, code, words",
    [
        (Rule(status=401), 502, "ASSISTANT_KEY", "VADEMECUM_ASSISTANT_KEY"),
        (Rule(status=403), 502, "ASSISTANT_KEY", "VADEMECUM_ASSISTANT_KEY"),
        (Rule(status=404), 502, "ASSISTANT_MODEL", MODEL),
        (Rule(status=400, raw=CANARY), 502, "ASSISTANT_FAILED", "shorter"),
        (Rule(status=302, headers={"Location": "/v1/elsewhere"}), 502, "ASSISTANT_FAILED", "address"),
        (Rule(status=500, raw=CANARY), 502, "ASSISTANT_FAILED", "500"),
        (
            Rule(raw="<html>", headers={"Content-Type": "text/html"}),
            502,
            "ASSISTANT_FAILED",
            "an invalid reply",
        ),
        (Rule(first_s=120), 502, "ASSISTANT_UNREACHABLE", "0.2 s"),
    ],
)
def test_endpoint_error_becomes_a_readable_problem_response(tmp_path, rule, status, code, words):
    async def scenario(h, model, ada):
        detail = check_problem(await ask(ada, CANARY), status, code)["detail"]
        assert words in detail and CANARY not in detail
        assert len(model.requests) == 1, "a redirect must not be followed"

    scenario_of(tmp_path, scenario, rule, assistant_idle_timeout_s=0.2 if rule.first_s else 60)


@pytest.mark.parametrize(
    "status, given, wait",
    [
        (429, "7", "7"),
        (429, "0", "1"),
        (503, "7", "7"),
        (429, "Wed, 21 Oct 2099 07:28:00 GMT", "30"),
        (429, "9999999", "3600"),
    ],
)
def test_retry_after_of_endpoint_is_forwarded_to_client(tmp_path, status, given, wait):
    async def scenario(h, model, ada):
        answer = await ask(ada)
        check_problem(answer, 503, "ASSISTANT_BUSY")
        assert answer.headers["retry-after"] == wait

    scenario_of(tmp_path, scenario, Rule(status=status, headers={"Retry-After": given}))


NEWER = "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."


def limits_of(model):
    return [{name for name in request.body if name.startswith("max_")} for request in model.requests]


def test_endpoint_rejecting_max_tokens_gets_max_completion_tokens(tmp_path):
    async def scenario(h, model, ada):
        assert text_of(await read_answer(ada)) == "Yes."
        assert limits_of(model) == [{"max_tokens"}, {"max_completion_tokens"}]
        older, newer = (request.body for request in model.requests)
        assert newer.pop("max_completion_tokens") == older.pop("max_tokens") and older == newer

    refusing = Rule(without="max_completion_tokens", status=400, raw=NEWER)
    scenario_of(tmp_path, scenario, refusing, Rule(say=["Yes."]))


def test_endpoint_rejecting_both_token_parameters_is_retried_only_once(tmp_path):
    async def scenario(h, model, ada):
        detail = check_problem(await ask(ada), 502, "ASSISTANT_FAILED")["detail"]
        assert "Unsupported" not in detail and len(model.requests) == 2

    scenario_of(tmp_path, scenario, Rule(status=400, raw=NEWER))


@pytest.mark.parametrize("rule", [Rule(status=400, raw="x" * 2**20 + NEWER), Rule(status=500, raw=NEWER)])
def test_endpoint_errors_about_other_parameters_are_not_retried(tmp_path, rule):
    async def scenario(h, model, ada):
        check_problem(await ask(ada), 502, "ASSISTANT_FAILED")
        assert len(model.requests) == 1

    scenario_of(tmp_path, scenario, rule)


def test_endpoint_cookie_is_not_sent_back(tmp_path):
    """The cookie would reveal to the endpoint that two users share one server."""

    async def scenario(h, model, ada):
        await read_answer(ada)
        await read_answer(await h.person())
        assert len(model.requests) == 2 and not any("cookie" in request.headers for request in model.requests)

    scenario_of(tmp_path, scenario, Rule(headers={"Set-Cookie": "who=ada; Path=/"}))


def test_unreachable_endpoint_is_reported(tmp_path):
    async def scenario(h, model, ada):
        check_problem(await ask(ada), 502, "ASSISTANT_UNREACHABLE")

    scenario_of(tmp_path, scenario, assistant_url="http://127.0.0.1:9")


async def test_question_is_rejected_if_no_assistant_is_configured(tmp_path):
    async with serve(tmp_path) as h:
        ada = await h.person()
        check_problem(await ask(ada), 503, "NO_ASSISTANT")
        response = await ada.call("GET", "/v1/assistant")
        assert response.json() == {"available": False, "model": None}


def test_assistant_route_returns_only_availability_and_model_name(tmp_path):
    async def scenario(h, model, ada):
        assert (await ada.call("GET", "/v1/assistant")).json() == {"available": True, "model": MODEL}
        assert model.requests == [], "the model must not be asked for its availability"

    scenario_of(tmp_path, scenario)


EMOJI = "Schöne Grüße 🏡 東京"


@pytest.mark.parametrize(
    "rule, text, finish",
    [
        (Rule(say=[EMOJI], cut=1), EMOJI, "stop"),
        (Rule(say=["No ", "room"], finish="length"), "No room", "length"),
        (Rule(say=["x"], finish="a reason of its own"), "x", "other"),
        (Rule(say=["<thi", "nk>Hm, the", " tenant</thi", "nk>\n\nIt is ", "R9."], cut=3), "It is R9.", "stop"),
        (Rule(think="Hm, the tenant", say=["It is R9."]), "It is R9.", "stop"),
        (Rule(say=["The mark ", "<think> is HTML."]), "The mark <think> is HTML.", "stop"),
        (Rule(say=["<thi"]), "<thi", "stop"),
        (Rule(say=["long "], ends="never"), "long " * 20, "length"),
        (Rule(raw=': hello\n\nid: 1\r\ndata: {"choices":[]}\r\ndata:{"choices":[{"delta":{"content":"A"}}]}\n'
                  'data: {"choices":[{"delta":null}],"usage":{}}\ndata: [DONE]\n'), "A", "stop"),
    ],
)  # fmt: skip
def test_answer_text_and_finish_reason_of_model_are_forwarded(tmp_path, rule, text, finish):
    async def scenario(h, model, ada):
        events = await read_answer(ada)
        assert (text_of(events), events[-1]) == (text, ("done", {"finish": finish}))

    scenario_of(tmp_path, scenario, rule, assistant_characters=100)


SAID = 'data: {"choices":[{"delta":{"content":"It is "}}]}\n\n'


@pytest.mark.parametrize(
    "rule, text, code",
    [
        (Rule(say=["It is "], ends="broken"), "It is ", "ASSISTANT_FAILED"),
        (Rule(say=["It is "], ends="silent"), "It is ", "ASSISTANT_UNREACHABLE"),
        (Rule(raw=SAID + f"data: {CANARY}\n\n"), "It is ", "ASSISTANT_FAILED"),
        (Rule(raw=SAID + "data: " + "[" * 100_000 + "\n\n"), "It is ", "ASSISTANT_FAILED"),
        (Rule(raw=SAID + "data: " + "x" * (2**20 + 1)), "It is ", "ASSISTANT_FAILED"),
        (
            Rule(raw=SAID + f'data: {{"error":{{"message":"{CANARY} {KEY}"}}}}\n\n'),
            "It is ",
            "ASSISTANT_FAILED",
        ),
        (Rule(raw='data: {"choices":[{"delta":{"content":"\\ud83d"}}]}\n\n'), "\ufffd", "ASSISTANT_FAILED"),
        (Rule(say=["<think>and think"]), "", "ASSISTANT_FAILED"),
        (Rule(say=["word "], pause_s=0.1, ends="never"), None, "ASSISTANT_TIMEOUT"),
        (Rule(raw=CANARY), "", "ASSISTANT_FAILED"),
    ],
)
def test_failed_answer_keeps_partial_text_and_explains_failure(tmp_path, rule, text, code):
    async def scenario(h, model, ada):
        events = await read_answer(ada)
        name, failure = events[-1]
        assert (name, failure["code"]) == ("failed", code) and failure["message"].endswith(".")
        assert CANARY not in failure["message"] and KEY not in failure["message"]
        assert text is None or text_of(events) == text

    silence_s, whole_s = 1 if rule.ends == "silent" else 60, 2 if rule.ends == "never" else 60
    scenario_of(tmp_path, scenario, rule, assistant_idle_timeout_s=silence_s, assistant_timeout_s=whole_s)


def test_context_event_precedes_a_slow_first_token(tmp_path, monkeypatch):
    """While the model is silent, heartbeats keep the connection open."""
    monkeypatch.setattr("vademecum.services.chat.answer.HEAD_START_S", 0.2)

    async def scenario(h, model, ada):
        async with listen_on_port(h.app) as url, stream_answer(url, ada) as lines:
            text = ""
            async for line in lines:
                text += line + "\n"
                if line == ": hb":
                    model.release_answer()
        assert text.index("event: context") < text.index(": hb") < text.index("event: delta")
        assert text_of(events_of(text)) == "At last."

    scenario_of(tmp_path, scenario, Rule(say=["At last."], held=True), heartbeat_s=0.2)


def test_endpoint_failure_after_response_start_is_sent_as_event(tmp_path, monkeypatch):
    monkeypatch.setattr("vademecum.services.chat.answer.HEAD_START_S", 0.2)

    async def scenario(h, model, ada):
        async with listen_on_port(h.app) as url, stream_answer(url, ada) as lines:
            model.release_answer()
            name, failure = await last_event(lines)
        assert (name, failure["code"]) == ("failed", "ASSISTANT_KEY")

    scenario_of(tmp_path, scenario, Rule(status=401, held=True))


def test_authoritative_mode_without_results_skips_the_model(tmp_path):
    async def scenario(h, model, ada):
        await ada.push("sessions", session("s1", mode="authoritative"))
        events = await read_answer(ada)
        assert "no documents" in text_of(events) and events[0][1]["model"] is None
        for name in ("lease.txt", "annex.txt"):
            await ada.upload(name, f"The orchard of {name} has forty trees.")
        events = await read_answer(ada, "zebra")
        assert text_of(events) == f"{NOT_FOUND} Searched: annex.txt, lease.txt."
        assert (events[0][1]["citations"], events[-1]) == ([], ("done", {"finish": "stop"}))
        assert model.requests == []
        assert text_of(await read_answer(ada, "orchard")) == "You asked: orchard", (
            "the model must be asked if the search has results"
        )

    scenario_of(tmp_path, scenario)
