"""All data folders of a machine share one models folder; a running server finds a new model in it."""

import httpx
import pytest

from cli.command_runner import Home, rows, small_model, upload
from wait_until import soon_outside

MODEL = "e5-small-v2"


class SharedHome(Home):
    """A data folder that uses the default models folder, which is shared."""

    def environment(self):
        told = super().environment()
        del told["VADEMECUM_MODELS"]
        return told | {"XDG_CACHE_HOME": str(self.data.with_name("cache"))}


def model_in_use(home, client):
    """Return the model in use, or None. Check that the API and all commands report the same."""
    served = client.get("/v1/models").json()
    current = [model["id"] for model in served["models"] if model["hash"] == served["current"]]
    listed = [row["id"] for row in home.ok("models", "list", "--json").json if row["inUse"]]
    (finding,) = [one for one in home.run("doctor", "--json").json if one["check"] == "model"]
    doctor = [finding["detail"].partition(",")[0]] if finding["ok"] else []
    ready = client.get("/ready").json()["model"]
    assert current == listed == doctor == ([ready] if ready else []), (current, listed, finding, ready)
    return ready


def signed_in(home, server):
    home.add("ada@example.org")
    headers = {"Authorization": f"Bearer {home.token('ada@example.org')}"}
    return httpx.Client(base_url=server.url, headers=headers, timeout=60)


def test_running_server_finds_model_installed_in_shared_folder(tmp_path):
    home = SharedHome(tmp_path / "data")
    with home.serve() as server, signed_in(home, server) as ada:
        assert model_in_use(home, ada) is None
        upload(ada, "lease.txt", "The tenant gives notice three months before.")
        small_model(tmp_path / "cache" / "vademecum" / "models")
        soon_outside(lambda: ada.get("/ready").json()["model"] == MODEL)
        assert model_in_use(home, ada) == MODEL
        current = ada.get("/v1/models").json()["current"]
        soon_outside(lambda: [row["model"] for row in rows(ada, "vectorEmbeddings")] == [current])
        found = ada.post("/v1/search", json={"query": "notice", "sessionId": "s1"}).json()
        assert found["scope"]["pending"] == 0 and len(found["results"]) == 1
    other = SharedHome(tmp_path / "other")
    with other.serve() as server, signed_in(other, server) as ada:
        assert model_in_use(other, ada) == MODEL
    assert not (tmp_path / "data" / "models").exists()


@pytest.mark.parametrize("shared", [True, False])
def test_model_in_models_folder_of_data_folder_is_still_found(tmp_path, shared):
    home = SharedHome(tmp_path / "data")
    small_model(home.data / "models")
    if shared:
        small_model(tmp_path / "cache" / "vademecum" / "models")
    assert MODEL in home.ok("models", "list").out
    with home.serve() as server, signed_in(home, server) as ada:
        assert model_in_use(home, ada) == MODEL
        assert ada.get("/v1/models").json()["models"][0]["id"] == MODEL
