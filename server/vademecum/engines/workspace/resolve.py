"""Resolve a folder to its project. All code that reads or writes agent activity uses this resolver.

The nearest `.vademecum.toml` up to the repository's root decides, then the repository, then the folder itself. All paths
are canonical (symlinks resolved), so a folder has one identity.
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
    """A project's location. `top`: its local root folder; in a worktree this is not the folder that `identity` names."""

    __slots__ = ()

    def relative(self, path: str, cwd: str) -> str:
        """Return the stored form of a path that an agent in `cwd` used."""
        return relative(_absolute(path, cwd, self.top), self.top, self.home)


def identify(cwd: str, home: str) -> FolderIdentity:
    """Return the identity of a folder's project. Raises BadRequest as `locate`."""
    found: FolderIdentity = locate(cwd, home).identity
    return found


def locate(cwd: str, home: str, configured: bool = True) -> Place:
    """Return the project location of a folder. `configured`: read configs.
    Raises BadRequest for `/` and for an invalid config."""
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
    """Return the folders to search for a config: none above the repository, none at or above the home folder."""
    inside = [one for one in ancestors(folder) if not within(home, one)]
    return [one for one in inside if within(one, repository.top)] if repository else inside


def _in_main(folder: str, repository: Repository | None) -> str:
    """Return the folder in the main checkout that corresponds to a worktree's folder."""
    if repository is None:
        return folder
    return os.path.normpath(os.path.join(repository.root, os.path.relpath(folder, repository.top)))


def _absolute(path: str, cwd: str, top: str) -> str:
    """Return the path as named if it lies in the project, even through a symlink to the project; otherwise its canonical
    path. The last component is not resolved, because the agent changed the link, not its target."""
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
