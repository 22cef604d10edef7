"""Which project a folder belongs to. One resolver for everything that reads or writes what agents do.

The nearest `.vademecum.toml` up to the repository's root; else the repository; else the folder itself. All paths are
canonical (symlinks resolved), so that a folder has one identity by whichever way one came to it.
"""

from __future__ import annotations

import os
from collections import namedtuple

from vademecum.engines.workspace.config import project_of
from vademecum.engines.workspace.git import Repository, ancestors, around
from vademecum.errors import BadRequest
from vademecum.model.agents.project_identity import (
    FolderIdentity,
    folder_name,
    identity,
    relative,
    repository_name,
    within,
)


class Place(namedtuple("Place", ("identity", "top", "home"))):
    """`top`: the folder here that is the project's root; in a worktree not the one that the identity names."""

    __slots__ = ()

    def relative(self, path: str, cwd: str) -> str:
        """A path that an agent in `cwd` named, as it is stored."""
        return relative(_absolute(path, cwd, self.top), self.top, self.home)


def identify(cwd: str, home: str) -> FolderIdentity:
    found: FolderIdentity = locate(cwd, home).identity
    return found


def locate(cwd: str, home: str, configured: bool = True) -> Place:
    """Raises BadRequest for `/` and, unless configs are left out, for one that does not fit."""
    folder, home = os.path.realpath(cwd), os.path.realpath(home)
    if folder == "/":
        raise BadRequest("The folder / is no project. Work in a folder of its own.")
    if folder == home:
        return _place("", home, home, "home", home)
    repository = around(folder)
    for above in _up_to(folder, repository, home) if configured else []:
        name = project_of(above)
        if name is not None:
            return _place(name, above, _in_main(above, repository), "config", home)
    if repository:
        return _place(repository_name(repository.root), repository.top, repository.root, "git", home)
    return _place(folder_name(folder), folder, folder, "folder", home)


def _place(name: str, top: str, root: str, source: str, home: str) -> Place:
    return Place(identity(name, root, source, home), top, home)


def _up_to(folder: str, repository: Repository | None, home: str) -> list[str]:
    """Where a config may lie: nowhere above the repository, and never in the home folder or above that."""
    inside = [one for one in ancestors(folder) if not within(home, one)]
    return [one for one in inside if within(one, repository.top)] if repository else inside


def _in_main(folder: str, repository: Repository | None) -> str:
    """The folder of the main repository that a worktree's folder stands for."""
    if repository is None:
        return folder
    return os.path.normpath(os.path.join(repository.root, os.path.relpath(folder, repository.top)))


def _absolute(path: str, cwd: str, top: str) -> str:
    """As it was named, if that lies in the project, by whichever way one came to the project; else where it really is.
    The last part is not resolved: a link is what was written, not what it leads to."""
    if path[1:3] in {":\\", ":/"} or path.startswith("\\\\"):
        return path
    named = os.path.normpath(os.path.join(cwd, path))
    if within(named, top):
        return named
    for above in ancestors(named):
        if os.path.realpath(above) == top:
            return top + named[len(above) :]
    folder, last = os.path.split(named)
    return os.path.join(os.path.realpath(folder), last)
