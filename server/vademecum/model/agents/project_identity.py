"""What a project is called and where it lies, told from paths alone: equal on every machine that has the same tree.

What the file system says is found by engines/workspace. A home folder is written `~`, so that neither a person's name
nor another home directory is part of an identity. A path with backslashes is a name like any other: it stays as it is.
"""

from __future__ import annotations

import posixpath
from collections import namedtuple

from vademecum.model.secrets import hide_in_path

HOME = "home"
NAME_MAX = 100
ROOT_MAX = 4096


# Not typing.NamedTuple: `vademecum record` starts at each step of an agent, and importing typing is a tenth of that.
class FolderIdentity(namedtuple("FolderIdentity", ("name", "root", "source"))):
    """`root` begins with `~` if it lies in the home folder. `source`: config, git, folder or home."""

    __slots__ = ()


def identity(name: str, root: str, source: str, home: str) -> FolderIdentity:
    """Of the folder `root`. The home folder has one identity, whoever it belongs to and whatever is in it."""
    if root == home:
        return FolderIdentity(HOME, "~", HOME)
    return FolderIdentity(name, tilde(root, home), source)


def folder_name(folder: str) -> str:
    """What a folder is called, as a project's name can be: short, and without what cannot be seen."""
    name = posixpath.basename(folder).strip()[:NAME_MAX]
    seen = "".join(c if c.isprintable() else "_" for c in name)
    return seen if is_name(seen) else "_"


def repository_root(common: str) -> str:
    """The root of the repository whose data is in the folder `common`: where its worktrees are looked for. A bare
    repository is its own root, but a hidden one (`project/.bare`) belongs to the folder around it."""
    parent, name = posixpath.split(common)
    return parent if name.startswith(".") else common


def repository_name(root: str) -> str:
    return folder_name(root).removesuffix(".git") or folder_name(root)


def is_name(value: object) -> bool:
    """Whether a project can be called this: 1 to 100 characters that can be seen, blanks around them aside. `*` means
    all projects."""
    name = value.strip() if isinstance(value, str) else ""
    return 1 <= len(name) <= NAME_MAX and name.isprintable() and name != "*"


def hidden(name: str, root: str) -> tuple[str, str]:
    """An identity's name and root without secrets, cut as they were; hidden once or twice, they are the same."""
    return hide_in_path(name, NAME_MAX)[0][:NAME_MAX].strip(), hide_in_path(root, ROOT_MAX)[0][:ROOT_MAX]


def tilde(path: str, home: str) -> str:
    """With `~` for the home folder."""
    return "~" + path[len(home) :] if within(path, home) else path


def within(path: str, folder: str) -> bool:
    """Is the path the folder itself or below it? Nothing is within `/`: no project is, and no home."""
    return folder not in {"", "/"} and (path == folder or path.startswith(folder + "/"))


def relative(path: str, root: str, home: str) -> str:
    """The path as it is stored: from the root on, `.` for the root itself; outside it as it is, with `~` for the home
    folder. `root` may be an identity's. A path that is not absolute stays as it is."""
    if not path.startswith("/"):
        return path
    path = posixpath.normpath("/" + path.lstrip("/"))
    root = posixpath.join(home, root[2:]) if root.startswith("~/") else home if root == "~" else root
    if path == root:
        return "."
    return path[len(root) + 1 :] if within(path, root) else tilde(path, home)
