"""The assistant of a real server process: its settings, the doctor's check, and the secrecy of its key."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from cli.command_runner import ROOT, Home, upload
from property.rows import episode, session, sync_path
from server.memory.extracting_server import REPLY
from server.scripted_llm import MODEL

KEY = "sk-canary-0123456789"
CANARY = "Zanzibarquokka"


@contextmanager
def scripted(folder, *rules):
    """Run the scripted model in its own process and yield its address."""
    script = folder / "rules.json"
    script.write_text(json.dumps(rules))
    process = subprocess.Popen(
        [sys.executable, "-m", "server.scripted_llm", str(script)],
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests")},
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def home_with(tmp_path, url, model=MODEL):
    settings = {"assistant_url": url, "assistant_model": model, "assistant_key": KEY}
    return Home(tmp_path / "data", settings)


def finding(home):
    looked = home.run("doctor", "--json")
    assert KEY not in looked.out + looked.err
    return next(one for one in looked.json if one["check"] == "assistant")


def test_assistant_key_question_and_reply_are_not_logged(tmp_path):
    rules = [
        {"when": "refuse", "status": 401, "raw": f"{KEY} {CANARY}"},
        {"when": "break", "say": [f"{CANARY} pays."], "ends": "broken"},
        {"when": "", "say": [f"{CANARY} pays."]},
    ]
    with scripted(tmp_path, *rules) as url:
        home = home_with(tmp_path, url)
        with home.serve() as server:
            home.add("ada@example.org")
            with server.client(home.token("ada@example.org")) as ada:
                upload(ada, "lease.txt", f"{CANARY} pays the rent.")
                for word in ("answer", "refuse", "break"):
                    body = {"query": f"{word} {CANARY}", "sessionId": "s1"}
                    answer = ada.post("/v1/answer", json=body)
                    assert KEY not in answer.text + str(answer.headers)
                    assert answer.status_code == (502 if word == "refuse" else 200)
                for path in ("/v1/assistant", "/v1/me", "/metrics", "/ready", "/schema/openapi.json"):
                    shown = ada.get(path).text
                    assert KEY not in shown and url not in shown, path
            assert finding(home)["ok"]
            server.end()
        asked = httpx.get(f"{url}/asked", trust_env=False).json()
        assert [one["headers"]["authorization"] for one in asked][:3] == [f"Bearer {KEY}"] * 3, (
            "the requests to the model must contain the key"
        )
    output = server.output()
    assert f"Assistant: {MODEL}" in output and '"ASSISTANT_KEY"' in output, (
        "the log must name the model and the error code"
    )
    assert KEY not in output and CANARY not in output
    files = [path for path in home.data.rglob("*") if path.is_file()]
    assert files and not any(KEY.encode() in path.read_bytes() for path in files)


def test_doctor_checks_the_assistant(tmp_path):
    refusing = {"when": "/models", "status": 401, "raw": KEY}
    with scripted(tmp_path) as url:
        home = home_with(tmp_path, url + "/v1/")
        home.add("ada@example.org")
        assert finding(home) == {
            "check": "assistant", "ok": True, "detail": f"{MODEL} at {url}/v1, reachable, has the model",
        }  # fmt: skip
        home.settings["assistant_model"] = "another"
        assert not finding(home)["ok"] and "does not have the model another" in finding(home)["detail"]
    assert not finding(home)["ok"] and "cannot be reached" in finding(home)["detail"]
    with scripted(tmp_path, refusing) as url:
        home.settings["assistant_url"] = url
        assert not finding(home)["ok"] and "VADEMECUM_ASSISTANT_KEY" in finding(home)["detail"]
    home.settings = {}
    assert finding(home)["ok"] and "not set up" in finding(home)["detail"]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"assistant_url": f"localhost:11434/{KEY}"}, "http://"),
        ({"assistant_url": f"http://localhost:{KEY}"}, "contain a host"),
        ({"assistant_url": f"http://ada:{KEY}@localhost"}, "name or password"),
        ({"assistant_url": f"http://localhost/v1?key={KEY}"}, "without ?"),
        ({"assistant_url": f"http://[{KEY}/v1"}, "URL"),
        ({"assistant_url": "http://localhost:11434", "assistant_model": ""}, "VADEMECUM_ASSISTANT_MODEL"),
        ({"assistant_key": f"{KEY}é"}, "key"),
    ],
)
def test_server_does_not_start_with_invalid_assistant_address(tmp_path, settings, words):
    home = home_with(tmp_path, "")
    refusal = home.run("serve", "--port", 0, **settings).refusal()
    assert words in refusal and KEY not in refusal


def test_stopping_server_ends_answers_with_error(tmp_path):
    with scripted(tmp_path, {"say": ["word "], "pause_s": 0.05, "ends": "never"}) as url:
        home = home_with(tmp_path, url)
        with home.serve() as server:
            home.add("ada@example.org")
            with server.client(home.token("ada@example.org")) as ada:
                body = {"query": "go on", "sessionId": "s1"}
                with ada.stream("POST", "/v1/answer", json=body) as answer:
                    lines = answer.iter_lines()
                    assert next(line for line in lines if line.startswith('data: {"text"'))
                    server.process.terminate()
                    rest = list(lines)
            assert "event: failed" in rest and '"STOPPING"' in "".join(rest)
            assert server.process.wait(60) == 0


def test_command_leaves_extraction_to_the_next_started_server(tmp_path):
    """A request of a short command would be aborted, but still be paid for and counted as an attempt."""
    home = home_with(tmp_path, "http://127.0.0.1:9")
    with home.serve() as server:
        home.add("ada@example.org")
        with server.client(home.token("ada@example.org")) as ada:
            for collection, row in (("sessions", session("s1")), ("episodes", episode("e1", "s1"))):
                sent = [{"newDocumentState": row}]
                assert ada.post(f"{sync_path(collection)}/push", json=sent).json() == []
        server.end()
    with scripted(tmp_path, {"say": [REPLY], "first_s": 0.5}) as url:

        def asked():
            return len(httpx.get(f"{url}/asked", trust_env=False).json())

        home.settings["assistant_url"] = url
        time.sleep(1.5)  # wait until the backoff of the job has ended
        for _ in range(3):
            home.ok("context", "--user", "ada@example.org", "--folder", tmp_path)
            assert asked() == 0
        with home.serve() as server, server.client(home.token("ada@example.org")) as ada:
            for _ in range(1200):
                if (job := ada.get("/v1/jobs").json()["jobs"][0])["state"] == "done":
                    break
                time.sleep(0.1)
            assert (job["state"], job["attempts"], asked()) == ("done", 1, 1)
            server.end()
