"""The doctor recommends the multilingual model for documents in other languages than English."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cli.command_runner import Home, small_model

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
