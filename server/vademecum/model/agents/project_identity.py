"""Derive a project's name and root from paths alone. Machines with the same folder tree get the same result.

The module engines/workspace reads the file system. The home folder is written `~`, so that an identity contains no user
name and does not depend on the location of the home folder. A path with backslashes is not converted.
"""

from __future__ import annotations

import posixpath
from collections import namedtuple

from vademecum.model.secrets import hide_in_path

HOME = "home"
NAME_MAX = 100
ROOT_MAX = 4096


# Not typing.NamedTuple: importing typing takes a tenth of the startup of `vademecum record`, which runs at each agent step.
class FolderIdentity(namedtuple("FolderIdentity", ("name", "root", "source"))):
    """The identity of a project folder.

    `root`: its path, which begins with `~` inside the home folder. `source`: where the name comes from (config, git,
    folder or home).
    """

    __slots__ = ()


def create_identity(name: str, root: str, source: str, home: str) -> FolderIdentity:
    """Return the identity of the folder `root`. All home folders have the same identity, whatever their path."""
    if root == home:
        return FolderIdentity(HOME, "~", HOME)
    return FolderIdentity(name, abbreviate_home(root, home), source)


def project_name(folder: str) -> str:
    """Return the folder's name as a valid project name: shortened, with invisible characters replaced."""
    name = posixpath.basename(folder).strip()[:NAME_MAX]
    visible = "".join(c if c.isprintable() else "_" for c in name)
    return visible if is_name(visible) else "_"


def repository_root(git_directory: str) -> str:
    """Return the folder that contains the repository's git directory.

    A bare repository is its own root, but a hidden one (`project/.bare`) belongs to the folder that contains it.
    """
    parent, name = posixpath.split(git_directory)
    return parent if name.startswith(".") else git_directory


def repository_name(root: str) -> str:
    return project_name(root).removesuffix(".git") or project_name(root)


def is_name(value: object) -> bool:
    """Return whether a project can have this name: 1 to 100 visible characters, not counting spaces around it.

    The name `*` is not allowed, because it means all projects.
    """
    name = value.strip() if isinstance(value, str) else ""
    return 1 <= len(name) <= NAME_MAX and name.isprintable() and name != "*"


def redact_identity(name: str, root: str) -> tuple[str, str]:
    """Return an identity's name and root with secrets redacted. The function is idempotent."""
    return hide_in_path(name, NAME_MAX)[0][:NAME_MAX].strip(), hide_in_path(root, ROOT_MAX)[0][:ROOT_MAX]


def abbreviate_home(path: str, home: str) -> str:
    """Return the path with `~` for the home folder."""
    return "~" + path[len(home) :] if is_inside(path, home) else path


def is_inside(path: str, folder: str) -> bool:
    """Return whether the path is the folder or below it.

    No path counts as inside `/`, because `/` is neither a project nor a home folder.
    """
    return folder not in {"", "/"} and (path == folder or path.startswith(folder + "/"))


def relative_path(path: str, root: str, home: str) -> str:
    """Return the stored form of a path: relative to `root`, `.` for the root itself, or absolute outside of the root.

    `root` may be abbreviated with `~`. Outside the root, `~` replaces the home folder. A relative path is returned as it is.
    """
    if not path.startswith("/"):
        return path
    path = posixpath.normpath("/" + path.lstrip("/"))
    root = posixpath.join(home, root[2:]) if root.startswith("~/") else home if root == "~" else root
    if path == root:
        return "."
    return path[len(root) + 1 :] if is_inside(path, root) else abbreviate_home(path, home)
