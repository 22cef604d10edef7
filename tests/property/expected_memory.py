"""The expected memory of one person (`ExpectedMemory`). Each row has its own canary in its text.

It derives the scope of each row from the rules of the contract, independently of the server.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from server.in_process_server import Person

CANARY = re.compile(r"canary-u\d+-\d+")
Home = str | None  # a project's id, or None for rows outside of projects


@dataclass
class Entry:
    """An expected row.

    `session`: the session of a turn or of a session's summary, whose project is the project of the session.
    `project`: the project of any other row. `older`: the canary of the memory that this one claims to supersede.
    """

    collection: str
    id: str
    session: str | None = None
    project: Home = None
    ends: tuple[str, str] | None = None  # the two entity ids of a relationship
    older: str = ""


@dataclass
class ExpectedMemory:
    """The expected rows of a person.

    `projects`: the ids of the projects that are not deleted. `sessions`: maps each session to its project.
    `turns`: maps each session to its number of turns. `said`: maps the canary of each row to the row.
    """

    person: Person
    number: int
    count: int = 0
    projects: list[str] = field(default_factory=list)
    sessions: dict[str, Home] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)  # maps each session to its external id
    entries: dict[str, Entry] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)

    def canary(self) -> str:
        self.count += 1
        return f"canary-u{self.number}-{self.count}"

    def home(self, entry: Entry) -> Home:
        return entry.project if entry.session is None else self.sessions[entry.session]

    def of(self, *collections: str) -> dict[str, Entry]:
        return {canary: entry for canary, entry in self.entries.items() if entry.collection in collections}

    def in_home(self, home: Home, *collections: str) -> set[str]:
        """Return the canaries of the rows of these collections that are in this partition now."""
        return {canary for canary, entry in self.of(*collections).items() if self.home(entry) == home}

    def of_session(self, session: str, *collections: str) -> set[str]:
        return {canary for canary, entry in self.of(*collections).items() if entry.session == session}

    def drop(self, canaries: Iterable[str]) -> None:
        """Remove the rows of these canaries, and the relationships of the removed entities."""
        removed = {self.entries.pop(canary).id for canary in set(canaries)}
        for canary, entry in self.of("relationships").items():
            if entry.ends is not None and removed & set(entry.ends):
                del self.entries[canary]

    def drop_session(self, session: str) -> None:
        self.drop(self.of_session(session, "episodes", "summaries", "sessions"))
        del self.sessions[session], self.external[session]

    def drop_project(self, project: str, *, with_sessions: bool) -> None:
        for session in [one for one, home in self.sessions.items() if home == project]:
            if with_sessions:
                self.drop_session(session)
            else:
                self.sessions[session] = None
        own = self.of("memories", "entities", "summaries", "observations")
        self.drop(
            canary for canary, entry in own.items() if entry.session is None and entry.project == project
        )
        self.projects.remove(project)


def canaries_in(text: str) -> set[str]:
    return set(CANARY.findall(text))
