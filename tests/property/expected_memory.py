"""The books that a test keeps of one person's memory: every text holds a canary of its own, and the books say where its
row is by the contract's rules, whatever the server thinks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from server.in_process_server import Person

CANARY = re.compile(r"canary-u\d+-\d+")
Home = str | None  # a project's id, or None: the pool


@dataclass
class Entry:
    """A row. `session`: of a turn or a session's summary, which go where it goes; `project`: of what stays in its own.
    `older`: the canary of the memory of which it says that it took its place."""

    collection: str
    id: str
    session: str | None = None
    project: Home = None
    ends: tuple[str, str] | None = None  # of a relationship
    older: str = ""


@dataclass
class Books:
    """`turns`: how many a session has had. `sessions`: id -> where it is now. `projects`: the live ones. `said`: canary -> row."""

    person: Person
    number: int
    count: int = 0
    projects: list[str] = field(default_factory=list)
    sessions: dict[str, Home] = field(default_factory=dict)
    external: dict[str, str] = field(default_factory=dict)  # session -> the id that other programs know it by
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
        """The canaries of the rows of these collections that are there now."""
        return {canary for canary, entry in self.of(*collections).items() if self.home(entry) == home}

    def sung_in(self, session: str, *collections: str) -> set[str]:
        return {canary for canary, entry in self.of(*collections).items() if entry.session == session}

    def drop(self, canaries: Iterable[str]) -> None:
        """These rows are gone, and the relationships of those that were entities."""
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
