"""Entry point of the `vademecum` command.

`vademecum record` runs at each step of a coding agent, so it bypasses the modules that are slow to import.
"""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None, prog_name: str | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments[:1] == ["record"] and not {"-h", "--help"} & set(arguments):
        from vademecum.cli.agents import record

        record.main(arguments[1:])
    from vademecum.cli import commands

    commands.main(arguments, prog_name=prog_name)


if __name__ == "__main__":
    main()
