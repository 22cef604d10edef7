"""Check README.md and docs/: their code blocks run, and the commands, settings and routes in them exist."""

import json
import os
import re
import subprocess
import sys
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cli.command_runner import MODELS, ROOT, Home
from vademecum import errors
from vademecum.app import create_app
from vademecum.settings import Rates, Settings, default_tiers

EXECUTED = ("README.md", "docs/api.md")
PAGES = sorted(p for p in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")] if p.name != "CHANGELOG.md")
PAGE_NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
ADDRESS = "http://127.0.0.1:8787"
NOT_RUN = {
    "make run": "installs everything; `.ci/run` does that on a clean clone",
    "VADEMECUM_ASSISTANT_URL=http://localhost:11434 VADEMECUM_ASSISTANT_MODEL=qwen2.5:3b make run": (
        "needs a language model; tests/cli/test_assistant.py does the same with a scripted one"
    ),
}
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
LINK = re.compile(r"(?<!\!)\[[^\]]*\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)$", re.MULTILINE)


@dataclass
class Block:
    language: str
    text: str


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    return [
        Block(language, textwrap.dedent(text).strip()) for _, language, text in BLOCK.findall(text_of(page))
    ]


def prose_of(page: str) -> str:
    return BLOCK.sub("", text_of(page))


class Shell:
    """Run the code blocks of a page in order. Each block has the variables and files of the previous blocks."""

    def __init__(self, home: Home, folder: Path, url: str) -> None:
        self._url = url
        self._folder = folder
        (folder / "papers").mkdir(parents=True)
        (folder / "papers" / "lease.txt").write_text("The tenant pays for repairs under 100 euros.")
        command = folder / "bin" / "vademecum"
        command.parent.mkdir()
        command.write_text(f'#!/bin/sh\nexec {sys.executable} -m vademecum.cli.main "$@"\n')
        command.chmod(0o755)
        self._saved = folder / "environment"
        self._environment = {
            **home.environment(),
            "VADEMECUM_DATA": str(home.data),
            "HOME": str(folder),
            "PATH": f"{command.parent}:{os.environ['PATH']}",
        }

    def run(self, block: Block) -> str:
        text = block.text.replace(ADDRESS, self._url)
        if block.language == "python":
            script = self._folder / "block.py"
            script.write_text(text)
            text = f"{sys.executable} {script}"
        load = f"[ ! -e {self._saved} ] || . {self._saved}"
        done = subprocess.run(
            ["bash", "-euc", f"{load}\n{text}\nexport -p > {self._saved}"],
            env=self._environment, cwd=self._folder, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
        return done.stdout


def shape(value: Any) -> Any:
    """Return a JSON value with types instead of values, for comparison. A null matches any type."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape(item) for item in value[:1]]
    return {"bool": "bool", "str": "text", "NoneType": None}.get(type(value).__name__, "number")


@pytest.mark.parametrize("page", EXECUTED)
def test_documented_code_blocks_run_and_print_what_is_shown(page, tmp_path):
    home = Home(tmp_path / "data", {"models": str(MODELS)})
    output, executed = "", 0
    with home.serve() as server:
        shell = Shell(home, tmp_path / "home", server.url)
        for block in blocks_of(page):
            if block.language == "json":
                assert shape(json.loads(output)) == shape(json.loads(block.text)), output
            elif block.text not in NOT_RUN:
                assert block.language in ("sh", "python"), (
                    f"the language of this code block is missing: {block.text}"
                )
                output = shell.run(block)
                executed += 1
    assert executed


def test_list_of_documented_blocks_that_are_not_run_is_short_and_current():
    there = {block.text for page in EXECUTED for block in blocks_of(page)}
    assert len(NOT_RUN) <= 8 and NOT_RUN.keys() <= there


def commands_of(page: str) -> list[list[str]]:
    """Return the arguments of each `vademecum` command in the code of the page."""
    code = [*INLINE.findall(prose_of(page)), *(line for b in blocks_of(page) for line in b.text.splitlines())]
    parts = [part for line in code for part in re.split(r"(?:^|[\s/(])vademecum(?= )", line)[1:]]
    commands = [re.split(r" (?:\||&&|-- )|[)`\\]", part)[0].split() for part in parts]
    return [words for words in commands if words and re.fullmatch(r"[a-z]+", words[0])]


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_documented_commands_and_options_exist(page, tmp_path):
    home = Home(tmp_path / "data")
    for words in commands_of(page):
        names = [word for word in words[:2] if re.fullmatch(r"[a-z]+", word)]
        help_texts = [home.run(*names[:depth], "--help").out for depth in range(len(names), 0, -1)]
        help_text = next(filter(None, help_texts), "")
        options = [re.split(r"[=,.;]", word)[0] for word in words if word.startswith("--")]
        missing = [name for name in options if not re.search(rf"{name}\b", help_text)]
        assert help_text and not missing, f"vademecum {' '.join(words)}: {missing}"


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_documented_settings_exist(page):
    named = set(re.findall(r"\bVADEMECUM_([A-Z_]+[A-Z])\b", text_of(page)))
    read_at_install = {"MVN"}  # read at installation, so it is no setting of the server
    assert named <= {name.upper() for name in Settings.__struct_fields__} | read_at_install


@pytest.mark.parametrize("page", PAGE_NAMES)
def test_local_links_in_documentation_lead_to_files(page):
    targets = [one or other for one, other in LINK.findall(prose_of(page))]
    local = [target.partition("#")[0] for target in targets if not re.match(r"https?:|#|mailto:", target)]
    assert [target for target in local if not ((ROOT / page).parent / target).exists()] == []


def test_api_page_names_every_error_code():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "code")]
    generic = {"ERROR", "UNREADABLE", "ASSISTANT"}  # base classes, whose codes no response contains
    named = set(re.findall(r"`([A-Z_]{4,})`", text_of("docs/api.md")))
    assert {kind.code for kind in kinds} - generic <= named


def test_api_page_names_every_route():
    schema = create_app(Settings(data=Path("unused"))).openapi_schema.to_schema()
    page = text_of("docs/api.md")
    elsewhere = ("/v1/sync/", "/v1/agents/", "/v1/observations")  # documented on other pages
    paths = [path for path in schema["paths"] if not path.startswith(elsewhere)]
    words = {word for path in paths for word in path.split("/") if word and "{" not in word}
    assert sorted(word for word in words - {"v1"} if not re.search(rf"/{word}\b", page)) == []


def test_api_page_shows_the_limits_of_each_tier():
    page, tiers = text_of("docs/api.md"), default_tiers()
    megabytes = {name: [getattr(tiers[t], name) >> 20 for t in ("FREE", "JIVE", "JIGGA")]
                 for name in ("file_bytes", "storage_bytes")}  # fmt: skip
    assert "| file size | {} MB | {} MB | {} MB |".format(*megabytes["file_bytes"]) in page
    assert "| storage on the server | {} MB | {} MB | {} MB |".format(*megabytes["storage_bytes"]) in page
    rates = Rates()
    message = (
        f"sign-in {rates.sign_in}, pushes {rates.push}, other writes {rates.write}, reads {rates.read}, "
        f"uploads {rates.upload}, searches {rates.search}, answers {rates.answer}"
    )
    assert message in " ".join(page.split())


def test_glossary_is_alphabetical_and_short():
    terms = re.findall(r"^\| (.+?) \| .+ \| `.+` \|$", text_of("docs/GLOSSARY.md"), re.MULTILINE)
    assert terms == sorted(terms, key=str.casefold) and 60 <= len(terms) <= 80
