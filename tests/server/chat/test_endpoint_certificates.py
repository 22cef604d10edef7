"""TLS connections to the assistant's endpoint verify its certificate."""

import ssl

import pytest

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
