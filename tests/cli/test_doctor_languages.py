"""The doctor recommends the multilingual model for documents in other languages than English."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.command_runner import Home, small_model
from vademecum.engines.duckdb.fence import fence_folder
from vademecum.model.records.paths import user_folder

EMAIL = "ada@example.org"
ARABIC = "إيجار الشقة في شارع الميناء مرتفع. مدة الإشعار ثلاثة أشهر."


def languages(home: Home) -> dict[str, Any]:
    (one,) = [one for one in home.run("doctor", "--json").json if one["check"] == "languages"]
    return dict(one)


def add_document(home: Home, name: str, text: str) -> None:
    path = home.data.with_name(name)
    path.write_text(text, encoding="utf-8")
    home.ok("import", path, "--user", EMAIL, "--session", "s1")


def test_doctor_recommends_multilingual_model_for_mostly_foreign_documents(tmp_path: Path) -> None:
    home = Home(tmp_path / "data", {"models": str(small_model(tmp_path / "models"))})
    home.add(EMAIL)
    with home.serve():
        add_document(home, "a.txt", "a cat")
        add_document(home, "b.txt", ARABIC)
        assert languages(home)["detail"] == "the model in use suits the documents"
        add_document(home, "c.txt", f"2 {ARABIC}")
        found = languages(home)
        assert found["ok"]
        assert f"most documents of {EMAIL} are not in English" in found["detail"]
        assert "`vademecum models pull multilingual-e5-small` (488 MB)" in found["detail"]


def test_doctor_recommends_multilingual_model_despite_a_fenced_account(tmp_path: Path) -> None:
    home = Home(tmp_path / "data", {"models": str(small_model(tmp_path / "models"))})
    home.add(EMAIL)
    fenced = home.add("fenced@example.org")
    with home.serve():
        add_document(home, "a.txt", ARABIC)
        home.ok("import", home.data.with_name("a.txt"), "--user", "fenced@example.org", "--session", "s1")
    # A damaged file without a log cannot be recovered, so the account stays fenced.
    (user_folder(home.data, fenced) / "records.duckdb").write_bytes(b"damaged")
    fence_folder(home.data).mkdir(exist_ok=True)
    (fence_folder(home.data) / fenced).write_text("a block of the file is corrupt")
    with home.serve():
        assert f"most documents of {EMAIL} are not in English" in languages(home)["detail"]
