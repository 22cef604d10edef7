"""`vademecum epoch` begins a new epoch for one or all accounts, so their devices sync from zero."""

PULL = "/v1/sync/facts/0/pull"


def checkpoint(client):
    return client.get(PULL, params={"lwt": 0, "id": ""}).json()["checkpoint"]


def test_epoch_command_begins_new_epoch_only_for_named_account(home):
    home.add_with_document("ada@example.org")
    bob = home.add_with_document("bob@example.org")
    with (
        home.serve() as server,
        server.client(home.token("ada@example.org")) as ada,
        server.client(home.token("bob@example.org")) as other,
    ):
        old, others = checkpoint(ada), checkpoint(other)
        assert "1 account." in home.ok("epoch", "ada@example.org").out
        answer = ada.get(PULL, params=old)
        assert answer.status_code == 409 and answer.json()["code"] == "EPOCH"
        assert other.get(PULL, params=others).status_code == 200
        assert home.ok("epoch", "--all", "--json").json == {"accounts": 3, "failed": []}
        assert other.get(PULL, params=others).status_code == 409
    [records] = home.data.glob(f"users/*/{bob}/records.duckdb")
    records.unlink()
    done = home.run("epoch", "--all")
    assert done.code == 1 and "bob@example.org" in done.err and "2 accounts" in done.out


def test_epoch_command_requires_one_known_account_or_all(home):
    home.add_with_document("ada@example.org")
    assert "Name one account" in home.run("epoch").refusal()
    assert "Name one account" in home.run("epoch", "ada@example.org", "--all").refusal()
    assert "nobody@example.org" in home.run("epoch", "nobody@example.org").refusal()
