"""Define the help of `vademecum record`.

The command itself is in `record.py`, which avoids the slow import of click.
"""

from __future__ import annotations

from pathlib import Path

import click

from vademecum.cli.agents import record as record_command
from vademecum.cli.options import data_option


@click.command()
@data_option
@click.option("--user", "email", default="", help="The account's email.  [default: the owner]")
def record(data: Path, email: str) -> None:
    """Record one hook event of a coding agent, as JSON on standard input.

    Add the command to the hooks in the agent's settings. For Claude Code, add it to ~/.claude/settings.json under
    SessionStart, UserPromptSubmit, PostToolUse, PostToolUseFailure, Stop and SessionEnd:

    \b
      {"hooks": {"PostToolUse": [{"hooks": [
        {"type": "command", "command": "vademecum record"}]}]}}

    To record a decision by hand:

    \b
      echo '{"kind": "decision", "content": "We use UTC."}' | vademecum record

    The event waits in the data folder until a server runs. Passwords, keys and file contents are removed before it is
    written. The command never stops an agent: it exits with 0, prints nothing to standard output and reports problems in
    one line on standard error.
    """
    record_command.main([f"--data={data}", f"--user={email}"])
