"""Find the git repository of a folder by reading `.git`, without running git."""

from __future__ import annotations

import os
from collections import namedtuple

from vademecum.model.agents.project_identity import repository_root

POINTER_MAX = 4096  # maximum number of bytes to read from a `.git`, `commondir` or `gitdir` file, which contains one path


class Repository(namedtuple("Repository", ("root", "top"))):
    """A git repository. `top` is the root folder of the checkout, and `root` is the root folder of the main checkout.

    They differ only in a worktree.
    """

    __slots__ = ()


def find_repository(folder: str) -> Repository | None:
    """Return the repository whose working tree or git directory contains the folder, or None."""
    for candidate in ancestors(folder):
        dot_git = os.path.join(candidate, ".git")
        if os.path.isfile(dot_git):
            return Repository(_find_root(candidate, dot_git), candidate)
        if _is_git_directory(dot_git):
            return Repository(candidate, candidate)
        if _is_git_directory(candidate):
            root = repository_root(candidate)
            return Repository(root, root)
    return None


def ancestors(folder: str) -> list[str]:
    """Return the folder and its ancestors without `/`, nearest first."""
    folders = []
    while folder != os.path.dirname(folder):
        folders.append(folder)
        folder = os.path.dirname(folder)
    return folders


def _find_root(top: str, dot_git: str) -> str:
    """Return the main repository's root for a worktree, otherwise `top`.

    Only the git directory of a worktree has a file `commondir`; that of a submodule and a separate git directory have
    none. If the repository was moved, return `top`, too.
    """
    git_directory = _read_pointer(dot_git, "gitdir:", top)
    common = git_directory and _read_pointer(os.path.join(git_directory, "commondir"), "", git_directory)
    return repository_root(common) if common and _is_worktree(git_directory, common, dot_git) else top


def _is_worktree(git_directory: str, common: str, dot_git: str) -> bool:
    """Return whether the repository lists this worktree.

    The check is necessary because any `.git` file can name any repository.
    """
    if os.path.dirname(git_directory) != os.path.join(common, "worktrees") or not _is_git_directory(common):
        return False
    return _read_pointer(os.path.join(git_directory, "gitdir"), "", git_directory) == os.path.realpath(
        dot_git
    )


def _read_pointer(file: str, prefix: str, base: str) -> str:
    """Return the canonical folder that a git file names after `prefix`, relative to `base`; "" if there is none."""
    try:
        with open(file, encoding="utf-8", errors="surrogateescape") as handle:
            text = handle.read(POINTER_MAX).strip()
    except OSError:
        return ""
    if not text.startswith(prefix) or "\0" in text:
        return ""
    return os.path.realpath(os.path.join(base, text.removeprefix(prefix).strip()))


def _is_git_directory(folder: str) -> bool:
    """Return whether the folder has the entries that git requires of a git directory."""
    return all(os.path.exists(os.path.join(folder, part)) for part in ("HEAD", "objects", "refs"))
