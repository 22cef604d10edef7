"""Search by meaning counts less in languages that the model does not know."""

from server.in_process_server import MODELS, run_for_one
from vademecum.engines.onnx.embedder import Embedder
from vademecum.engines.onnx.pinned_models import ALL_MINILM

ARABIC = [
    "يدفع المستأجر الإيجار في اليوم الثالث من كل شهر إلى حساب المالك في البنك",
    "يجب على المستأجر إبلاغ المالك قبل ثلاثة أشهر من مغادرة الشقة",
    "لا يسمح بتربية الكلاب في الشقة دون موافقة مكتوبة من المالك",
    "يتحمل المالك تكاليف إصلاح السقف والنوافذ في المبنى",
    "يفتح المسبح من الساعة السابعة صباحا حتى الساعة التاسعة مساء",
    "تصل القطارات من المدينة إلى الجبل كل ساعة خلال الصيف",
]
ENGLISH = "The rent is due on the third working day of each month."
VAGUE_QUESTION = "tell me everything"
QUESTION = "متى يدفع المستأجر الإيجار كل شهر"


def test_arabic_question_about_arabic_text_is_answered_by_words(tmp_path):
    async def scenario(h, ada):
        for number, text in enumerate(ARABIC):
            await ada.upload(f"{number}.txt", text)
        await h.drain_jobs(ada)
        order = {}
        for mode in ("words", "meaning", "hybrid"):
            results = (await ada.search(QUESTION, k=6, mode=mode))["results"]
            order[mode] = [result["filename"] for result in results]
        assert order["words"][0] == "0.txt"
        assert order["hybrid"] == order["words"]
        assert order["meaning"][: len(order["words"])] != order["words"], (
            "the modes must differ for this test"
        )

    run_for_one(tmp_path, scenario, model=True)


def test_arabic_question_without_common_words_is_answered_by_meaning(tmp_path):
    async def scenario(h, ada):
        await ada.upload("lease.txt", "The rent is due on the third working day of each month.")
        await h.drain_jobs(ada)
        results = (await ada.search("ايجار", k=5, mode="hybrid"))["results"]
        assert [result["filename"] for result in results] == ["lease.txt"]

    run_for_one(tmp_path, scenario, model=True)


def test_arabic_text_follows_english_text_without_common_words(tmp_path, monkeypatch):
    async def scenario(h, ada):
        for number, text in enumerate(ARABIC):
            await ada.upload(f"{number}.txt", text)
        await ada.upload("lease.txt", ENGLISH)
        await h.drain_jobs(ada)
        order = {}
        for mode in ("meaning", "hybrid"):
            results = (await ada.search(VAGUE_QUESTION, k=9, mode=mode))["results"]
            order[mode] = [result["filename"] for result in results]
        assert order["meaning"][0] != "lease.txt", "the English text must not be the nearest for this test"
        assert order["hybrid"][0] == "lease.txt"
        assert sorted(order["hybrid"]) == sorted(order["meaning"])
        monkeypatch.setattr(Embedder, "is_multilingual", True)
        results = (await ada.search(VAGUE_QUESTION, k=9, mode="hybrid"))["results"]
        assert [result["filename"] for result in results] == order["meaning"]

    run_for_one(tmp_path, scenario, model=MODELS)


def test_english_question_uses_words_and_meaning(tmp_path):
    async def scenario(h, ada):
        await ada.upload("lease.txt", "The rent of the flat is 940 euros a month.")
        await ada.upload(
            "pool.txt", "The pool opens at seven in the morning, and what it costs is on the door."
        )
        await h.drain_jobs(ada)
        results = (await ada.search("what does housing cost", k=5, mode="hybrid"))["results"]
        assert {result["filename"] for result in results} == {"lease.txt", "pool.txt"}
        words = (await ada.search("what does housing cost", k=5, mode="words"))["results"]
        assert [result["filename"] for result in words] == ["pool.txt"]

    run_for_one(tmp_path, scenario, model=True)


def test_browsers_get_the_fitted_values_of_a_model(tmp_path):
    async def scenario(h, ada):
        (model,) = (await ada.call("GET", "/v1/models")).json()["models"]
        assert model["id"] == ALL_MINILM.id
        assert model["thresholds"]["chunkWeight"] == ALL_MINILM.fitted.chunk_weight == 1.0
        assert model["thresholds"]["languages"] == ["en"]

    run_for_one(tmp_path, scenario, model=MODELS)
