"""`vademecum claim` assigns a folder to an existing project after a confirmation."""

from cli.command_runner import Home

ADA = "ada@example.org"


def test_claim_merges_folder_into_project_after_confirmation(tmp_path):
    home = Home(tmp_path / "data")
    home.add(ADA)
    folders = [tmp_path / parent / "app" for parent in ("mine", "cloned")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / ".vademecum.toml").write_text('project = "app"')

    def project_and_notice(folder):
        answer = home.ok("context", "--user", ADA, "--folder", folder, "--json").json
        return answer["scope"]["project"]["name"], answer["notice"] or ""

    def claim(*arguments, stdin=""):
        return home.run("claim", *arguments, "--user", ADA, "--folder", folders[1], stdin=stdin)

    assert [project_and_notice(folder)[0] for folder in folders] == ["app", f"app ({folders[1]})"]
    assert f"run `vademecum claim` in {folders[1]}." in project_and_notice(folders[0])[1]
    assert claim("nosuch").refusal() == "There is no project with the name “nosuch”."
    assert claim(stdin="n\n").code == 1 and project_and_notice(folders[1])[0] != "app"
    confirmed = claim(stdin="y\n")
    assert confirmed.code == 0, confirmed.err
    assert f"Move everything from “app ({folders[1]})” to “app”?" in confirmed.out
    assert [project_and_notice(folder) for folder in folders] == [("app", ""), ("app", "")]
    assert claim("app", "--yes").out == f"{folders[1]} belongs to “app”.\n"
