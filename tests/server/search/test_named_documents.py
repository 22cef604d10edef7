"""If the question names a document, every second result is a passage of that document."""

from property.sync_wire import alone
from server.in_process_server import MODELS, run_for_one

PETS = "Pets are welcome here, dogs and cats and birds. "


def test_passages_of_named_document_alternate_with_other_results(tmp_path):
    async def scenario(ada):
        many = "\n\n".join(f"{PETS * 12} Rule {n}." for n in range(12))
        assert (await ada.upload("rules.txt", many)).status_code == 201
        lease = (await ada.upload("lease.txt", "One animal of the tenant's may live in the flat.")).json()[
            "document"
        ]
        question = "pets: dogs, cats, birds"
        plain = (await ada.search(question, k=5, mode="words"))["results"]
        assert {result["filename"] for result in plain} == {"rules.txt"}
        named = (await ada.search(f"{question} in the tenant's lease.txt", k=5, mode="words"))["results"]
        assert [result["filename"] for result in named[:2]] == ["lease.txt", "rules.txt"]
        renamed = {**lease, "filename": "contract.txt"}
        await ada.push("documents", renamed, assumed=lease)
        named = (await ada.search(f"{question} in the tenant's contract", k=5, mode="words"))["results"]
        assert [result["filename"] for result in named[:2]] == ["contract.txt", "rules.txt"]

    alone(tmp_path, scenario)


def test_accidental_document_name_match_does_not_displace_better_result(tmp_path):
    async def scenario(ada):
        await ada.upload(
            "house.txt", "The deposit is paid back within three months after the flat is handed over."
        )
        note = "Letter of the association about the summer feast, the garden and who brings cake. "
        await ada.upload("letter.txt", "\n\n".join(note + f"Item {n}." for n in range(4)))
        by_chance = "Is a letter enough to have the deposit paid back within three months after the flat is handed over?"
        found = (await ada.search(by_chance, k=5, mode="words"))["results"]
        assert [result["filename"] for result in found[:2]] == ["house.txt", "letter.txt"]
        surely = by_chance.replace("a letter", "letter.txt")
        found = (await ada.search(surely, k=5, mode="words"))["results"]
        assert [result["filename"] for result in found[:2]] == ["letter.txt", "house.txt"]

    alone(tmp_path, scenario)


def test_passage_in_named_document_keeps_the_higher_of_its_two_scores(tmp_path):
    async def scenario(h, ada):
        await ada.upload(
            "rules.txt",
            "\n\n".join(f"{PETS * 12} Rule {n}." for n in range(12)) + "\n\nAquaria of turtles may leak.",
        )
        await ada.upload("lease.txt", "One animal of the tenant's may live in the flat.")
        await h.drain_jobs(ada)
        question = "May aquaria of turtles leak at a tenant's, says"

        async def score(text, mode):
            results = (await ada.search(text, k=20, mode=mode))["results"]
            return next(found["score"] for found in results if found["filename"] == "lease.txt")

        # In a hybrid search, naming the document raises the score, because the passage is the best one of that document. In a
        # word search it does not: within one document, terms that all its passages share count little.
        assert await score(f"{question} the house", "hybrid") < 1.0
        assert await score(f"{question} lease.txt", "hybrid") == 1.0
        assert await score(f"{question} lease.txt", "words") == await score(f"{question} the house", "words")

    run_for_one(tmp_path, scenario, model=MODELS)
