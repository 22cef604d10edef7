"""Resolve a folder to its project. All code that reads or writes agent activity uses this resolver.

The nearest `.vademecum.toml` up to the repository's root names the project. Without one, the repository is the project;
without a repository, the folder is. All paths are canonical (symlinks resolved), so that a folder has one identity.
"""

from __future__ import annotations

import os
from collections import namedtuple

from vademecum.engines.workspace.config import read_project_name
from vademecum.engines.workspace.git import Repository, ancestors, find_repository
from vademecum.errors import BadRequest
from vademecum.model.agents.project_identity import (
    FolderIdentity,
    create_identity,
    is_inside,
    project_name,
    relative_path,
    repository_name,
)


class ProjectLocation(namedtuple("ProjectLocation", ("identity", "top", "home"))):
    """A project's location. `top` is its root folder on this machine.

    In a worktree, `identity` names the folder of the main checkout instead.
    """

    __slots__ = ()

    def relative(self, path: str, cwd: str) -> str:
        """Return the stored form of a path that an agent in `cwd` used."""
        return relative_path(_make_absolute(path, cwd, self.top), self.top, self.home)


def identify(cwd: str, home: str) -> FolderIdentity:
    """Return the identity of a folder's project. Raises BadRequest as `locate` does."""
    identity: FolderIdentity = locate(cwd, home).identity
    return identity


def locate(cwd: str, home: str, use_config: bool = True) -> ProjectLocation:
    """Return the project location of a folder. If `use_config` is false, configs are ignored.

    Raises BadRequest for `/` and for an invalid config.
    """
    folder, home = os.path.realpath(cwd), os.path.realpath(home)
    if folder == "/":
        raise BadRequest("The folder / cannot be a project. Work in another folder.")
    if folder == home:
        return _create_location("", home, home, "home", home)
    repository = find_repository(folder)
    for ancestor in _config_folders(folder, repository, home) if use_config else []:
        name = read_project_name(ancestor)
        if name is not None:
            return _create_location(
                name, ancestor, _map_to_main_checkout(ancestor, repository), "config", home
            )
    if repository:
        return _create_location(
            repository_name(repository.root), repository.top, repository.root, "git", home
        )
    return _create_location(project_name(folder), folder, folder, "folder", home)


def _create_location(name: str, top: str, root: str, source: str, home: str) -> ProjectLocation:
    return ProjectLocation(create_identity(name, root, source, home), top, home)


def _config_folders(folder: str, repository: Repository | None, home: str) -> list[str]:
    """Return the folders to search for a config: none above the repository, none at or above the home folder."""
    folders = [ancestor for ancestor in ancestors(folder) if not is_inside(home, ancestor)]
    return (
        [ancestor for ancestor in folders if is_inside(ancestor, repository.top)] if repository else folders
    )


def _map_to_main_checkout(folder: str, repository: Repository | None) -> str:
    """Return the folder in the main checkout that corresponds to a worktree's folder."""
    if repository is None:
        return folder
    return os.path.normpath(os.path.join(repository.root, os.path.relpath(folder, repository.top)))


def _make_absolute(path: str, cwd: str, top: str) -> str:
    """Return the absolute path of a file that an agent named.

    A path in the project stays as the agent wrote it, even if it leads through a symlink to the project. Any other path
    is made canonical, except for its last component: if that is a symlink, the agent changed the link, not its target.
    """
    if path[1:3] in {":\\", ":/"} or path.startswith("\\\\"):
        return path
    normalized = os.path.normpath(os.path.join(cwd, path))
    if is_inside(normalized, top):
        return normalized
    for ancestor in ancestors(normalized):
        if os.path.realpath(ancestor) == top:
            return top + normalized[len(ancestor) :]
    folder, last = os.path.split(normalized)
    return os.path.join(os.path.realpath(folder), last)
