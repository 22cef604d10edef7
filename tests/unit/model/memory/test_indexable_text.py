"""The searchable text of memory rows, and its pieces. The end of the previous turn is embedded with the first piece."""

import pytest

from vademecum.model.documents.chunking import BUDGET, cost
from vademecum.model.memory.indexable_text import MAX_CONTEXT, MemoryRow, context_of, index_text, split_text
from vademecum.model.text.normalization import normalize

TEXTS = {
    "Latin": "It stands on a rock above the town, and has been there since the twelfth century. ",
    "Chinese": "它矗立在城镇上方的一块岩石上，自十二世纪以来一直在那里。",
    "Hangul": "그것은 마을 위의 바위에 서 있으며 십이 세기부터 거기에 있었다. ",
    "marks": normalize("a\u0301\u0302 e\u0308\u0301 n\u0303 "),
}


def test_each_kind_of_row_has_its_searchable_text() -> None:
    turn = MemoryRow(user_message="Who?", ai_response="Ada.", status="done")
    assert index_text("episodes/e", turn) == "Who?\n\nAda."
    assert (
        index_text("entities/n", MemoryRow(name="Ada", type="person", notes="likes tea"))
        == "Ada (person): likes tea"
    )
    assert index_text("entities/n", MemoryRow(name="Ada", type="person")) == "Ada (person)"
    assert index_text("memories/m", MemoryRow(text="likes tea")) == "likes tea"
    assert index_text("summaries/u", MemoryRow(content="in short")) == "in short"
    assert index_text("facts/f", MemoryRow(text="likes tea")) == ""


@pytest.mark.parametrize("status", ["queued", "streaming", "failed", ""])
def test_unfinished_turn_has_no_searchable_text(status: str) -> None:
    assert index_text("episodes/e", MemoryRow(user_message="Who?", ai_response="A", status=status)) == ""


def test_superseded_or_deleted_row_has_no_searchable_text() -> None:
    assert index_text("memories/m", MemoryRow(text="likes tea", superseded_by="n")) == ""
    assert index_text("memories/m", MemoryRow(text="likes tea", deleted=True)) == ""


@pytest.mark.parametrize("own", TEXTS)
@pytest.mark.parametrize("before", TEXTS)
@pytest.mark.parametrize("times", [1, 9, 60])
def test_first_piece_is_embedded_with_the_previous_turn(own: str, before: str, times: int) -> None:
    text, told = (TEXTS[own] * times).strip(), f"{'BEGINNING ' * 40}{TEXTS[before] * 9}".strip()
    cut_up = split_text(text, told)
    assert cut_up[0].embedded == f"{context_of(told)}\n\n{cut_up[0].text}"
    assert all(piece.embedded == piece.text for piece in cut_up[1:])
    assert all(piece.text in text for piece in cut_up)
    assert "".join("".join(piece.text for piece in cut_up).split()) == "".join(text.split())
    assert all(sum(map(cost, map(ord, piece.embedded))) <= BUDGET * 5 // 4 for piece in cut_up)


@pytest.mark.parametrize("name", TEXTS)
def test_context_of_turn_is_shorter_than_a_chunk(name: str) -> None:
    end = context_of(TEXTS[name] * 100)
    assert 0 < len(end) <= MAX_CONTEXT and TEXTS[name].strip().endswith(end[-4:].strip())
    assert sum(map(cost, map(ord, end))) < BUDGET // 4


def test_first_turn_is_embedded_without_context() -> None:
    assert [(p.text, p.embedded) for p in split_text("Who?")] == [("Who?", "Who?")]
    assert split_text(" \n", "And before that, this.") == [] == split_text("")
