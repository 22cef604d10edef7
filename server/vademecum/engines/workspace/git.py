"""The git repository around a folder, read from `.git` itself: no git program is needed, and none is waited for."""

from __future__ import annotations

import os
from collections import namedtuple

from vademecum.model.agents.project_identity import repository_root

POINTER_MAX = 4096  # bytes of a `.git` file: one path


class Repository(namedtuple("Repository", ("root", "top"))):
    """`top`: where its files are checked out. `root`: the same, or for a worktree the main repository's."""

    __slots__ = ()


def around(folder: str) -> Repository | None:
    """The repository in whose work tree, or in which, the folder is."""
    for above in ancestors(folder):
        dot_git = os.path.join(above, ".git")
        if os.path.isfile(dot_git):
            return Repository(_root_of(above, dot_git), above)
        if _is_store(dot_git):
            return Repository(above, above)
        if _is_store(above):
            root = repository_root(above)
            return Repository(root, root)
    return None


def ancestors(folder: str) -> list[str]:
    """The folder and those above it, but not `/`."""
    found = []
    while folder != os.path.dirname(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _root_of(top: str, dot_git: str) -> str:
    """A worktree's `.git` file names a folder with a file `commondir`; that of a submodule, or of a repository whose
    data lies elsewhere, does not. A worktree whose repository has been moved away stands alone."""
    own = _pointed(dot_git, "gitdir:", top)
    common = own and _pointed(os.path.join(own, "commondir"), "", own)
    return repository_root(common) if common and _is_worktree(own, common, dot_git) else top


def _is_worktree(own: str, common: str, dot_git: str) -> bool:
    """Does the repository know of it? Anybody can write a `.git` file that names another's repository."""
    if os.path.dirname(own) != os.path.join(common, "worktrees") or not _is_store(common):
        return False
    return _pointed(os.path.join(own, "gitdir"), "", own) == os.path.realpath(dot_git)


def _pointed(file: str, word: str, base: str) -> str:
    """The canonical folder that a file of git names after `word`, relative to `base`; nothing if it names none."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            said = opened.read(POINTER_MAX).strip()
    except OSError:
        return ""
    if not said.startswith(word) or "\0" in said:
        return ""
    return os.path.realpath(os.path.join(base, said.removeprefix(word).strip()))


def _is_store(folder: str) -> bool:
    """Has it what git wants of a repository's data?"""
    return all(os.path.exists(os.path.join(folder, part)) for part in ("HEAD", "objects", "refs"))
