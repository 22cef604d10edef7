"""`vademecum claim`: a folder is a project that was there before it when its person says so, and not sooner."""

from cli.command_runner import Home

ADA = "ada@example.org"


def test_a_folder_joins_the_project_that_it_is_called_as_once_the_person_says_so(tmp_path):
    home = Home(tmp_path / "data")
    home.add(ADA)
    folders = [tmp_path / parent / "app" for parent in ("mine", "cloned")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / ".vademecum.toml").write_text('project = "app"')

    def means(folder):
        told = home.ok("context", "--user", ADA, "--folder", folder, "--json").json
        return told["scope"]["project"]["name"], told["notice"] or ""

    def claim(*words, stdin=""):
        return home.run("claim", *words, "--user", ADA, "--folder", folders[1], stdin=stdin)

    assert [means(folder)[0] for folder in folders] == ["app", f"app ({folders[1]})"]
    assert f"run `vademecum claim` in {folders[1]};" in means(folders[0])[1]
    assert claim("nosuch").refusal() == "There is no project called “nosuch”."
    assert claim(stdin="n\n").code == 1 and means(folders[1])[0] != "app"
    said = claim(stdin="y\n")
    assert said.code == 0, said.err
    assert f"Make “app ({folders[1]})” with all that is in it a part of “app”?" in said.out
    assert [means(folder) for folder in folders] == [("app", ""), ("app", "")]
    assert claim("app", "--yes").out == f"{folders[1]} is “app”.\n"
