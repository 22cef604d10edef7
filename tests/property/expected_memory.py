"""A test's record (`Books`) of one person's memory. Each text has its own canary, and the books state the scope of its
row by the rules of the contract, independently of the server."""

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
    """A row. `session`: the session of a turn or summary, which move with it. `project`: the project of any other row.
    `older`: the canary of the memory that this one claims to supersede."""

    collection: str
    id: str
    session: str | None = None
    project: Home = None
    ends: tuple[str, str] | None = None  # the two entity ids of a relationship
    older: str = ""


@dataclass
class Books:
    """`turns`: session -> count. `sessions`: session -> project. `projects`: undeleted ids. `said`: canary -> row."""

    person: Person
    number: int
    count: int = 0
    projects: list[str] = field(default_factory=list)
    sessions: dict[str, Home] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)  # session -> its external id
    said: dict[str, Entry] = field(default_factory=dict)
    turns: Counter[str] = field(default_factory=Counter)

    def canary(self) -> str:
        self.count += 1
        return f"canary-u{self.number}-{self.count}"

    def home(self, entry: Entry) -> Home:
        return entry.project if entry.session is None else self.sessions[entry.session]

    def of(self, *collections: str) -> dict[str, Entry]:
        return {canary: entry for canary, entry in self.said.items() if entry.collection in collections}

    def within(self, home: Home, *collections: str) -> set[str]:
        """Return the canaries of the rows of these collections that are in this partition now."""
        return {canary for canary, entry in self.of(*collections).items() if self.home(entry) == home}

    def sung_in(self, session: str, *collections: str) -> set[str]:
        return {canary for canary, entry in self.of(*collections).items() if entry.session == session}

    def drop(self, canaries: Iterable[str]) -> None:
        """Remove these rows, and the relationships of removed entities."""
        gone = {self.said.pop(canary).id for canary in set(canaries)}
        for canary, entry in self.of("relationships").items():
            if entry.ends is not None and gone & set(entry.ends):
                del self.said[canary]

    def drop_session(self, session: str) -> None:
        self.drop(self.sung_in(session, "episodes", "summaries", "sessions"))
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
