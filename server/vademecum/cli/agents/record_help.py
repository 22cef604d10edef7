"""What a person is told of `vademecum record`; the command itself is in `record`, which imports nothing of this."""

from __future__ import annotations

from pathlib import Path

import click

from vademecum.cli.agents import record as quick
from vademecum.cli.options import data_option


@click.command()
@data_option
@click.option(
    "--user", "email", default="", help="Whose memory: the account's email.  [default: the owner's]"
)
def record(data: Path, email: str) -> None:
    """Keep what a coding agent did: one hook event, as JSON on standard input.

    Put it into the agent's settings as a command of its hooks; for Claude Code into ~/.claude/settings.json, under
    SessionStart, UserPromptSubmit, PostToolUse, PostToolUseFailure, Stop and SessionEnd:

    \b
      {"hooks": {"PostToolUse": [{"hooks": [
        {"type": "command", "command": "vademecum record"}]}]}}

    A decision can be kept by hand:

    \b
      echo '{"kind": "decision", "content": "We use UTC."}' | vademecum record

    The event waits in the data folder until a server runs. Passwords and keys are hidden and the contents of files are
    left out before it is written. It never stops an agent: it ends with 0 and prints nothing; what went wrong is a line
    on standard error.
    """
    quick.main([f"--data={data}", f"--user={email}"])
