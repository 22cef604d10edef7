"""Entry point of the `vademecum` command.

`vademecum record` runs at each step of a coding agent, so it bypasses the modules that are slow to import.
"""

from __future__ import annotations

import sys


def main(words: list[str] | None = None, prog_name: str | None = None) -> None:
    words = sys.argv[1:] if words is None else words
    if words[:1] == ["record"] and not {"-h", "--help"} & set(words):
        from vademecum.cli.agents import record

        record.main(words[1:])
    from vademecum.cli import commands

    commands.main(words, prog_name=prog_name)


if __name__ == "__main__":
    main()
