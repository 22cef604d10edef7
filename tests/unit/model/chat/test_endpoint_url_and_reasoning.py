"""The parts of an LLM request without I/O: the endpoint URL, removing reasoning, splitting lines, hiding the key."""

import pytest

from vademecum.engines.llm.sse_parser import LineBuffer
from vademecum.model.chat.endpoint_url import base_address
from vademecum.model.chat.strip_reasoning import AnswerText
from vademecum.settings import Secret, Settings


@pytest.mark.parametrize(
    "written, base",
    [
        ("http://localhost:11434", "http://localhost:11434/v1"),
        ("http://localhost:11434/", "http://localhost:11434/v1"),
        ("http://localhost:11434/v1", "http://localhost:11434/v1"),
        (" http://localhost:11434/v1/ ", "http://localhost:11434/v1"),
        ("https://llm.example.org/openai/v2/", "https://llm.example.org/openai/v2"),
        ("https://llm.example.org/v1/chat/completions", "https://llm.example.org/v1"),
        ("https://llm.example.org/chat/completions", "https://llm.example.org"),
        ("HTTP://localhost:65535", "http://localhost:65535/v1"),
        ("http://[::1]:8080", "http://[::1]:8080/v1"),
    ],
)
def test_endpoint_url_is_normalized(written, base):
    assert base_address(written) == base


@pytest.mark.parametrize("port", ["0", "65536", "99999"])
def test_invalid_port_is_refused(port):
    with pytest.raises(ValueError, match="65535"):
        base_address(f"http://localhost:{port}")


def test_reasoning_is_removed_however_answer_is_split():
    said = {
        "<think>Hm.</think>\n\nIt is R9.": "It is R9.",
        "\n<think></think><think>again</think> Yes </think> no": "Yes </think> no",
        "<b>bold</b> <think>": "<b>bold</b> <think>",
        "<thin": "<thin",
        "<think>never said </thin": "",
        "a < b": "a < b",
        "<thinking>Hm.</thinking>Yes": "Yes",
        "[THINK]Hm.[/THINK]Yes": "Yes",
        "Hm, I say R9.\n</think>\n\nIt is R9.": "It is R9.",
        "Hm.</think>Yes, </think> ends it": "Yes, </think> ends it",
        "The mark `</think>` ends it": "The mark `</think>` ends it",
        "```\n</think>\n```": "```\n</think>\n```",
        "Write <think> and </think>.": "Write <think> and </think>.",
        "no end </thin": "no end </thin",
    }
    for text, told in said.items():
        for step in range(1, len(text) + 1):
            shown = AnswerText()
            pieces = []
            for start in range(0, len(text), step):
                piece = shown.feed(text[start : start + step])
                pieces = [piece] if shown.has_restarted else [*pieces, piece]
                shown.has_restarted = False
            assert "".join([*pieces, shown.end()]) == told, (text, step)


def test_lines_are_complete_however_bytes_are_split():
    data = "data: Grüße 🏡\n\n: hb\r\ndata: x\nrest".encode()
    for step in range(1, len(data) + 1):
        lines = LineBuffer()
        found = [
            line for start in range(0, len(data), step) for line in lines.feed(data[start : start + step])
        ]
        assert found == data.split(b"\n")[:-1], step


def test_settings_do_not_show_the_assistant_key(tmp_path):
    settings = Settings(data=tmp_path, assistant_key=Secret("sk-canary"))
    assert "sk-canary" not in f"{settings!r} {settings} {settings.assistant_key}"
    assert settings.assistant_key.reveal() == "sk-canary"
