"""The path determines whether a file stores secrets. Source files, notes and examples do not count."""

from __future__ import annotations

import pytest

from vademecum.model.agents.hook_events import parse_action
from vademecum.model.secrets.sensitive_files import holds_secrets

MUST = [
    ".env", "~/app/.env", "deploy/.env.production", ".env-old", ".env.local", "prod.env", ".envrc", "C:\\Users\\ada\\.ENV",
    ".pgpass", "~/.pgpass", "~/.netrc", "_netrc", ".npmrc", ".pypirc", ".git-credentials", ".htpasswd", ".my.cnf", ".vault-token",
    "server.pem", "tls/server.key", "AuthKey_1.p8", "a.pfx", "a.p12", "release.keystore", "ada.kdbx", "ada.ovpn",
    "~/.ssh/id_rsa", "id_ed25519", "keys/id_ed25519_work", "~/.ssh/work", "~/.ssh/config.bak", "kubeconfig", "prod.kubeconfig",
    "~/.kube/config", "~/.docker/config.json", "~/.aws/credentials", "credentials", "credentials.json", "aws_credentials.csv",
    "application_default_credentials.json", "~/.cargo/credentials.toml", "client_secret_12.json", "service-account-prod.json",
    "secrets.yaml", "k8s/db-secrets.enc.yaml", "secret.yml", ".secrets", "passwords.txt", "terraform.tfvars", "terraform.tfstate",
    "/etc/shadow", "~/.config/gh/hosts.yml",
]  # fmt: skip
MUST_NOT = [
    "", "/", ".", "README.md", "src/id_generator.py", "id_rsa.pub", "id_rsa.py", "credentials_test.go", "services/credentials.py",
    "docs/credentials.md", "secrets/__init__.py", "secrets/files.py", "test_secrets.py", "password_reset.html", "Password.tsx",
    "credentials.png", ".env.example", ".env.sample", "config/.env.template", ".env.d.ts", ".environment", "env.py", "environment.yml",
    ".github/workflows/secret-scanning.yml", "~/.ssh/config", "~/.ssh/known_hosts", "~/.ssh/id_rsa.pub", "~/.ssh/authorized_keys",
    "keys.py", "keyboard.json", "monkey", "server.crt", "locales/en/auth.json", "kube/config.py", "app/config.json", "pem.go",
    "tokenizer.json", "secretary.txt", "my.cnf.md", "hosts.yml", "id_card.json", "variables.tf",
]  # fmt: skip
WORD = "hunter2"


@pytest.mark.parametrize("path", MUST)
def test_secret_file_is_detected_by_its_path(path: str) -> None:
    assert holds_secrets(path)


@pytest.mark.parametrize("path", MUST_NOT)
def test_ordinary_file_is_not_a_secret_file(path: str) -> None:
    assert not holds_secrets(path)


def action_of(tool: str, failed: str = "", **given: object) -> tuple[str, str, str]:
    """Return the kind, path and content of the recorded action."""
    event = {"hook_event_name": "PostToolUse", "tool_name": tool, "tool_input": given}
    if failed:
        event |= {"hook_event_name": "PostToolUseFailure", "error": failed}
    kept = parse_action(event)
    assert kept is not None
    return kept.kind, kept.path, kept.content


def test_no_content_of_secret_file_is_recorded() -> None:
    line = f"localhost:5432:db:user:{WORD}\n"
    assert action_of("Write", file_path=".pgpass", content=line) == ("write", ".pgpass", "31 bytes")
    edit = {"file_path": "a/.env", "old_string": WORD, "new_string": f"{WORD}3"}
    several = {"file_path": "a/.env", "edits": [{"old_string": WORD, "new_string": "x"}]}
    for tool, given in (("Edit", edit), ("MultiEdit", several)):
        assert action_of(tool, **given) == ("edit", "a/.env", "a file of secrets")
    failed = action_of("Edit", failed=f"String to replace not found in file.\nString: {WORD}", **edit)
    assert failed == ("error", "a/.env", "a file of secrets")
    assert action_of("Read", file_path=".env", offset=3, limit=2) == ("read", ".env", "lines 3–4")
    other = action_of("mcp__files__write", path="~/.netrc", text=WORD)
    assert other == ("command", "~/.netrc", "a file of secrets")


def test_excerpt_of_ordinary_file_is_recorded() -> None:
    assert action_of("Write", file_path="id_generator.py", content="import os\n")[2] == "10 bytes\nimport os"
    assert action_of("Edit", file_path="README.md", old_string="a", new_string="b")[2] == "- a\n+ b"
