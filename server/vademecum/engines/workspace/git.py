"""Find the git repository of a folder by reading `.git`, without running git."""

from __future__ import annotations

import os
from collections import namedtuple

from vademecum.model.agents.project_identity import repository_root

POINTER_MAX = 4096  # bytes of a `.git` file: one path


class Repository(namedtuple("Repository", ("root", "top"))):
    """A git repository. `top`: the checkout's root folder. `root`: the same; for a worktree the main checkout's root."""

    __slots__ = ()


def around(folder: str) -> Repository | None:
    """Return the repository whose working tree or git directory contains the folder, or None."""
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
    """Return the folder and its ancestors without `/`, nearest first."""
    found = []
    while folder != os.path.dirname(folder):
        found.append(folder)
        folder = os.path.dirname(folder)
    return found


def _root_of(top: str, dot_git: str) -> str:
    """Return the main repository's root for a worktree, otherwise `top`. Only a worktree's git directory has a file
    `commondir`; that of a submodule or a separate git directory has none. A moved repository also gives `top`."""
    own = _pointed(dot_git, "gitdir:", top)
    common = own and _pointed(os.path.join(own, "commondir"), "", own)
    return repository_root(common) if common and _is_worktree(own, common, dot_git) else top


def _is_worktree(own: str, common: str, dot_git: str) -> bool:
    """Return whether the repository lists this worktree, because any `.git` file can name a foreign repository."""
    if os.path.dirname(own) != os.path.join(common, "worktrees") or not _is_store(common):
        return False
    return _pointed(os.path.join(own, "gitdir"), "", own) == os.path.realpath(dot_git)


def _pointed(file: str, word: str, base: str) -> str:
    """Return the canonical folder that a git file names after `word`, relative to `base`; "" if there is none."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as opened:
            said = opened.read(POINTER_MAX).strip()
    except OSError:
        return ""
    if not said.startswith(word) or "\0" in said:
        return ""
    return os.path.realpath(os.path.join(base, said.removeprefix(word).strip()))


def _is_store(folder: str) -> bool:
    """Return whether the folder has the entries that git requires of a git directory."""
    return all(os.path.exists(os.path.join(folder, part)) for part in ("HEAD", "objects", "refs"))
