"""Connections to the assistant's endpoint verify its TLS certificate and use a proxy only if it is enabled."""

import ssl

import pytest

from server.chat.assistant_server import read_answer, serve_with_llm, text_of
from server.scripted_llm import Rule, start_llm
from vademecum.engines.llm.client import _create_tls_context


@pytest.mark.parametrize(
    ("base", "environment", "reads"),
    [
        ("https://llm.example.org/v1", False, True),
        ("https://llm.example.org/v1", True, True),
        ("http://127.0.0.1:11434/v1", True, True),  # a proxy of the environment may require TLS
        ("http://127.0.0.1:11434/v1", False, False),
    ],
)
def test_tls_context_always_verifies_certificates(base, environment, reads):
    trusted = _create_tls_context(base, environment)
    assert trusted.verify_mode == ssl.CERT_REQUIRED and trusted.check_hostname
    assert bool(trusted.get_ca_certs()) == reads


async def test_environment_proxy_is_ignored_unless_enabled(tmp_path, monkeypatch):
    async with start_llm(Rule(say=["by proxy"])) as proxy:
        for name in ("HTTP_PROXY", "http_proxy"):
            monkeypatch.setenv(name, proxy.url)
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        answers = []
        for is_enabled in (False, True):
            folder = tmp_path / str(is_enabled)
            async with serve_with_llm(folder, Rule(say=["directly"]), assistant_environment=is_enabled) as (
                h,
                _,
            ):
                answers.append(text_of(await read_answer(await h.person())))
        assert answers == ["directly", "by proxy"]
