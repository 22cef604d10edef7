"""The project of a folder comes from its config, its repository or its name, and is the same on every machine."""

import os
import subprocess
from pathlib import Path
from shutil import which

import pytest

from vademecum.engines.workspace import identify, locate
from vademecum.errors import BadRequest
from vademecum.model.agents.project_identity import FolderIdentity, is_name, project_name, relative_path

GIT = which("git")


def repository(folder, store=".git"):
    """Create the entries that git requires of a repository."""
    for part in ("objects", "refs"):
        (folder / store / part).mkdir(parents=True)
    (folder / store / "HEAD").write_text("ref: refs/heads/main\n")
    return folder


def config(folder, name):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / ".vademecum.toml").write_text(f'project = "{name}"\ncolour = "blue"\n')


def worktree(main, top, store=".git"):
    """Create the files of `git worktree add`."""
    own = main / store / "worktrees" / top.name
    own.mkdir(parents=True)
    (own / "commondir").write_text("../..\n")
    top.mkdir(parents=True)
    (top / ".git").write_text(f"gitdir: {own}\n")
    (own / "gitdir").write_text(f"{top / '.git'}\n")
    return top


def submodule(main, top):
    own = main / ".git" / "modules" / top.name
    repository(own, "")
    top.mkdir(parents=True)
    (top / ".git").write_text(f"gitdir: {os.path.relpath(own, top)}\n")
    return top


def tree(home):
    """Create a home folder with all kinds of projects."""
    dev = home / "dev"
    mono = repository(dev / "mono")
    config(mono / "apps" / "shop", "the shop")
    config(mono / "apps", "all apps")
    (mono / "apps" / "shop" / "src" / "deep").mkdir(parents=True)
    (mono / "apps" / "desk").mkdir()
    (mono / "docs").mkdir()
    config(dev / "plain", " Plain Ärger ")
    (dev / "plain" / "sub").mkdir()
    config(dev, "not for repositories")
    for one in ("dev/app", "work/app"):
        repository(home / one)
    (dev / "farm").mkdir()
    (dev / "farm" / "current").symlink_to(mono / "docs")
    (mono / "apps" / "shop" / "elsewhere").symlink_to(home / "work" / "app")
    worktree(dev / "app", home / "trees" / "app-fix")
    (home / "trees" / "app-fix" / "src").mkdir()
    worktree(mono, home / "trees" / "mono-fix")
    config(home / "trees" / "mono-fix" / "apps" / "shop", "the shop")
    repository(home / "hidden", ".bare")
    worktree(home / "hidden", home / "hidden" / "main", ".bare")
    repository(home / "bare" / "engine.git", "")
    worktree(home / "bare" / "engine.git", home / "trees" / "engine-fix", "")
    submodule(mono, mono / "vendor" / "lib")
    (home / "trees" / "orphan").mkdir()
    (home / "trees" / "orphan" / ".git").write_text("gitdir: /nowhere/.git/worktrees/orphan\n")
    (home / "notes" / "Über uns – 日記").mkdir(parents=True)
    repository(home / "Grüße aus Kraków")
    (home / "notes" / "empty" / ".git").mkdir(parents=True)
    return home


PLACES = {
    "dev/mono": ("mono", "~/dev/mono", "git"),
    "dev/mono/docs": ("mono", "~/dev/mono", "git"),
    "dev/mono/apps/shop": ("the shop", "~/dev/mono/apps/shop", "config"),
    "dev/mono/apps/shop/src/deep": ("the shop", "~/dev/mono/apps/shop", "config"),
    "dev/mono/apps/desk": ("all apps", "~/dev/mono/apps", "config"),
    "dev/mono/apps/shop/elsewhere": ("app", "~/work/app", "git"),
    "dev/mono/vendor/lib": ("lib", "~/dev/mono/vendor/lib", "git"),
    "dev/mono/.git/refs": ("mono", "~/dev/mono", "git"),
    "dev/plain/sub": ("Plain Ärger", "~/dev/plain", "config"),
    "dev/farm": ("not for repositories", "~/dev", "config"),
    "dev/farm/current": ("mono", "~/dev/mono", "git"),
    "dev/app": ("app", "~/dev/app", "git"),
    "work/app": ("app", "~/work/app", "git"),
    "trees/app-fix/src": ("app", "~/dev/app", "git"),
    "trees/mono-fix": ("mono", "~/dev/mono", "git"),
    "trees/mono-fix/apps/shop": ("the shop", "~/dev/mono/apps/shop", "config"),
    "trees/engine-fix": ("engine", "~/bare/engine.git", "git"),
    "trees/orphan": ("orphan", "~/trees/orphan", "git"),
    "hidden/main": ("hidden", "~/hidden", "git"),
    "bare/engine.git/refs": ("engine", "~/bare/engine.git", "git"),
    "notes": ("notes", "~/notes", "folder"),
    "notes/../work/app": ("app", "~/work/app", "git"),
    "notes/Über uns – 日記": ("Über uns – 日記", "~/notes/Über uns – 日記", "folder"),
    "notes/empty": ("empty", "~/notes/empty", "folder"),
    "notes/not there": ("not there", "~/notes/not there", "folder"),
    "Grüße aus Kraków": ("Grüße aus Kraków", "~/Grüße aus Kraków", "git"),
    "": ("home", "~", "home"),
    "dev/..": ("home", "~", "home"),
}


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Create the same tree in two home folders, one of them behind a symlink."""
    first, second = tmp_path_factory.mktemp("one") / "ada", tmp_path_factory.mktemp("two") / "grace"
    link = tmp_path_factory.mktemp("three") / "linked"
    link.symlink_to(tree(second))
    return tree(first), link


@pytest.mark.parametrize("folder", PLACES)
def test_project_identity_is_equal_in_every_home_folder(homes, folder):
    for home in homes:
        assert identify(str(home / folder), str(home)) == FolderIdentity(*PLACES[folder])


def forgeries(home):
    """Yield the folder and the files with which a foreign archive may imitate a worktree of ~/dev/app."""
    app, trees = home / "dev" / "app" / ".git", home / "trees"
    yield app / "worktrees" / "app-fix", {}  # a worktree that belongs to another folder
    brought = trees / "brought" / "own"
    yield brought, {brought / "commondir": app, brought / "gitdir": trees / "x" / ".git"}
    tracked = home / "dev" / "app" / "vendor" / "own"
    yield tracked, {tracked / "commondir": app, tracked / "gitdir": trees / "x" / ".git"}


@pytest.mark.parametrize("number", range(3))
def test_unlisted_worktree_is_its_own_project(tmp_path, number):
    home = tree(tmp_path / "ada")
    own, files = list(forgeries(home))[number]
    for file, said in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{said}\n")
    (home / "trees" / "x").mkdir()
    (home / "trees" / "x" / ".git").write_text(f"gitdir: {own}\n")
    assert identify(str(home / "trees" / "x"), str(home)) == FolderIdentity("x", "~/trees/x", "git")


FILES = {
    ("dev/mono/docs", "a.md"): "docs/a.md",
    ("dev/mono/docs", "."): "docs",
    ("dev/mono/docs", ".."): ".",
    ("dev/mono/docs", "../../app/x.py"): "~/dev/app/x.py",
    ("dev/mono/docs", "../docs/../../../.ssh/config"): "~/.ssh/config",
    ("dev/mono/docs", "~/dev/mono/docs/b.md"): "docs/b.md",
    ("dev/farm/current", "a.md"): "docs/a.md",
    ("dev/farm/current", "~/dev/farm/current/a.md"): "docs/a.md",
    ("dev/mono/apps/shop", "elsewhere/x.py"): "elsewhere/x.py",
    ("dev/mono/apps/shop", "/etc/../etc/hosts"): "/etc/hosts",
    ("dev/mono/apps/shop", "src\\deep\\a.py"): "src\\deep\\a.py",
    ("dev/mono/apps/shop", "C:\\src\\a.py"): "C:\\src\\a.py",
    ("dev/mono/apps/shop", "C:/src/a.py"): "C:/src/a.py",
    ("dev/mono/apps/shop", "\\\\host\\share"): "\\\\host\\share",
    ("trees/app-fix/src", "main.py"): "src/main.py",
    ("trees/mono-fix/apps/shop", "~/trees/mono-fix/apps/shop/a.ts"): "a.ts",
    ("Grüße aus Kraków", "Zażółć gęślą.txt"): "Zażółć gęślą.txt",
    ("", "todo.txt"): "todo.txt",
    ("", "~"): ".",
}


@pytest.mark.parametrize(("folder", "path"), FILES)
def test_stored_path_is_equal_in_every_home_folder(homes, folder, path):
    for home in homes:
        cwd = str(home / folder)
        said = path.replace("~", str(home), 1)
        assert locate(cwd, str(home)).relative(said, cwd) == FILES[folder, path]


@pytest.mark.parametrize(("path", "root", "home", "stored"), [
    ("/h/ada/dev/app/x", "~/dev/app", "/h/ada", "x"),
    ("/h/ada/dev/app", "~/dev/app", "/h/ada", "."),
    ("/h/ada/dev/application/x", "~/dev/app", "/h/ada", "~/dev/application/x"),
    ("/h/ada", "~", "/h/ada", "."),
    ("/h/adam/x", "/srv", "/h/ada", "/h/adam/x"),
    ("/srv/app/../x", "/srv/app", "/h/ada", "/srv/x"),
    ("//srv//app//x", "/srv/app", "/h/ada", "x"),
    ("/srv/app/x", "/srv/app", "/", "x"),
    ("/etc/hosts", "/srv/app", "/", "/etc/hosts"),
    ("../x", "/srv/app", "/h/ada", "../x"),
])  # fmt: skip
def test_paths_are_relative_or_abbreviated(path, root, home, stored):
    assert relative_path(path, root, home) == stored


MALFORMED = {
    "syntax": b"project = ",
    "empty file": b"",
    "no such key": b'name = "x"\n',
    "in a table": b'[tool]\nproject = "x"\n',
    "empty name": b'project = ""\n',
    "blank name": b'project = "  "\n',
    "a number": b"project = 7\n",
    "a list": b'project = ["x"]\n',
    "control characters": b'project = "a\\u0007b"\n',
    "a line end": b'project = "a\\nb"\n',
    "an invisible character": b'project = "a\\u200bb"\n',
    "too long": b'project = "' + b"x" * 101 + b'"\n',
    "not UTF-8": b'project = "\xff"\n',
    "nested deeply": b"x = " + b"[" * 20_000,
    "huge": b"# " + b"x" * 70_000,
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED)
def test_invalid_config_is_an_error_with_advice(tmp_path, content):
    config(tmp_path / "a", "above")
    below = repository(tmp_path / "a" / "b")
    (below / ".vademecum.toml").write_bytes(content)
    with pytest.raises(BadRequest) as refused:
        identify(str(below), str(tmp_path))
    assert str(below / ".vademecum.toml") in refused.value.message
    assert 'project = "name"' in refused.value.message


def test_config_that_is_no_regular_file_is_an_error(tmp_path):
    for number, make in enumerate((Path.mkdir, os.mkfifo)):
        folder = tmp_path / str(number)
        folder.mkdir()
        make(folder / ".vademecum.toml")
        with pytest.raises(BadRequest, match="is not a regular file"):
            identify(str(folder), str(tmp_path))


def test_config_may_begin_with_bom(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / ".vademecum.toml").write_bytes(b'\xef\xbb\xbfproject = "x"\r\n')
    assert identify(str(tmp_path / "a"), str(tmp_path)).name == "x"


def test_file_system_root_is_refused_as_project(tmp_path):
    for folder in ("/", "//", "/tmp/.."):
        with pytest.raises(BadRequest, match="The folder / cannot be a project"):
            identify(folder, str(tmp_path))


def test_home_repository_is_home_project(tmp_path):
    home = repository(tmp_path / "ada")
    config(home, "ada's")
    (home / "notes").mkdir()
    repository(home / "dev")
    assert identify(str(home), str(home)) == identify(str(home / "notes"), str(home)) == ("home", "~", "home")
    assert identify(str(home / "dev"), str(home)) == ("dev", "~/dev", "git")
    repository(tmp_path)
    (tmp_path / "grace").mkdir()
    assert identify(str(tmp_path / "grace"), str(tmp_path / "grace")) == ("home", "~", "home")


def test_config_above_repository_or_in_home_is_ignored(tmp_path):
    home = tmp_path / "ada"
    config(home, "mine")
    config(home / "dev", "all of them")
    repository(home / "dev" / "app")
    (home / "notes").mkdir()
    assert identify(str(home / "dev" / "app"), str(home)).name == "app"
    assert identify(str(home / "notes"), str(home)) == ("notes", "~/notes", "folder")


def test_root_outside_home_is_absolute(tmp_path):
    (tmp_path / "srv").mkdir()
    assert identify(str(tmp_path / "srv"), str(tmp_path / "ada")) == ("srv", str(tmp_path / "srv"), "folder")


def test_renamed_repository_folder_gives_a_new_project_name(tmp_path):
    before = repository(tmp_path / "old")
    before.rename(tmp_path / "new")
    assert identify(str(tmp_path / "new"), str(tmp_path)) == ("new", "~/new", "git")


def git(*words, cwd):
    whole = [
        GIT,
        *["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "protocol.file.allow=always"],
        *words,
    ]
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    subprocess.run(whole, cwd=cwd, check=True, capture_output=True, env=clean)


def by_hand(folder):
    app = repository(folder / "app")
    worktree(app, folder / "app-fix")
    submodule(app, app / "vendor" / "lib")
    worktree(repository(folder / "engine.git", ""), folder / "engine-fix", "")
    repository(folder / "data", "")
    (folder / "apart").mkdir()
    (folder / "apart" / ".git").write_text("gitdir: ../data\n")


def by_git(folder):
    app, lib = folder / "app", folder / "lib"
    for one in (app, lib):
        git("init", "-q", str(one), cwd=folder)
        git("commit", "-q", "--allow-empty", "-m", "first", cwd=one)
    git("worktree", "add", "-q", "../app-fix", cwd=app)
    git("submodule", "add", "-q", str(lib), "vendor/lib", cwd=app)
    git("clone", "-q", "--bare", str(app), "engine.git", cwd=folder)
    git("worktree", "add", "-q", "../engine-fix", cwd=folder / "engine.git")
    git("init", "-q", "--separate-git-dir", str(folder / "data"), str(folder / "apart"), cwd=folder)


@pytest.mark.parametrize("make", [by_hand, by_git] if GIT else [by_hand])
def test_real_git_repositories_are_detected(tmp_path, make):
    make(tmp_path)
    found = {folder: tuple(identify(str(tmp_path / folder), str(tmp_path)))
             for folder in ("app/.git/refs", "app-fix", "app/vendor/lib", "engine.git/refs", "engine-fix", "apart")}  # fmt: skip
    assert found == {
        "app/.git/refs": ("app", "~/app", "git"),
        "app-fix": ("app", "~/app", "git"),
        "app/vendor/lib": ("lib", "~/app/vendor/lib", "git"),
        "engine.git/refs": ("engine", "~/engine.git", "git"),
        "engine-fix": ("engine", "~/engine.git", "git"),
        "apart": ("apart", "~/apart", "git"),
    }


def test_git_program_is_not_needed(homes, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert identify(str(homes[0] / "trees" / "app-fix"), str(homes[0])).name == "app"


def test_odd_folder_name_becomes_valid_project_name():
    assert project_name("/x/a\nb\udcff") == "a_b_"
    assert project_name("/x/" + "y" * 200) == "y" * 100
    assert all(is_name(project_name(path)) for path in ("/x/ ", "/x/\t", "/x/ä"))
