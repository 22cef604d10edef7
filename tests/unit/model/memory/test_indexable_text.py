"""What a row of memory says, and how it is cut: the turn before is embedded with it and never kept beside it."""

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


def test_what_each_kind_says() -> None:
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
def test_a_turn_that_is_not_finished_says_nothing(status: str) -> None:
    assert index_text("episodes/e", MemoryRow(user_message="Who?", ai_response="A", status=status)) == ""


def test_what_was_superseded_or_deleted_says_nothing() -> None:
    assert index_text("memories/m", MemoryRow(text="likes tea", superseded_by="n")) == ""
    assert index_text("memories/m", MemoryRow(text="likes tea", deleted=True)) == ""


@pytest.mark.parametrize("own", TEXTS)
@pytest.mark.parametrize("before", TEXTS)
@pytest.mark.parametrize("times", [1, 9, 60])
def test_the_first_piece_is_embedded_with_the_end_of_the_turn_before_which_is_in_no_text(
    own: str, before: str, times: int
) -> None:
    text, told = (TEXTS[own] * times).strip(), f"{'BEGINNING ' * 40}{TEXTS[before] * 9}".strip()
    cut_up = split_text(text, told)
    assert cut_up[0].embedded == f"{context_of(told)}\n\n{cut_up[0].text}"
    assert all(piece.embedded == piece.text for piece in cut_up[1:])
    assert all(piece.text in text for piece in cut_up)
    assert "".join("".join(piece.text for piece in cut_up).split()) == "".join(text.split())
    assert all(sum(map(cost, map(ord, piece.embedded))) <= BUDGET * 5 // 4 for piece in cut_up)


@pytest.mark.parametrize("name", TEXTS)
def test_the_end_of_a_turn_is_short_enough_to_be_no_chunk_by_itself(name: str) -> None:
    end = context_of(TEXTS[name] * 100)
    assert 0 < len(end) <= MAX_CONTEXT and TEXTS[name].strip().endswith(end[-4:].strip())
    assert sum(map(cost, map(ord, end))) < BUDGET // 4


def test_the_first_turn_of_a_session_stands_alone_and_nothing_has_no_pieces() -> None:
    assert [(p.text, p.embedded) for p in split_text("Who?")] == [("Who?", "Who?")]
    assert split_text(" \n", "And before that, this.") == [] == split_text("")
