"""The contents of `/v1/me`, and the effects of a tier change."""

from property.rows import dead, fact
from server.accounts.account_clients import owner
from server.in_process_server import browser, check_problem, run, serve


def test_me_route_returns_account_tier_limits_and_usage(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            ada, bob = await h.person("JIVE"), await h.person()
            me = (await ada.call("GET", "/v1/me")).json()
            assert me["userId"] == ada.id and "@" in me["email"] and me["tier"] == "JIVE"
            assert me["limits"]["documents"] == 100 and me["usage"] == {"documents": 0, "bytes": 0}
            document_row = (await ada.upload("lease.txt", "The lease ends in March.")).json()["document"]
            await ada.push("facts", fact("f1"))
            used = (await ada.call("GET", "/v1/me")).json()["usage"]
            assert used["documents"] == 1 and used["bytes"] > len("The lease ends in March.")
            assert (await bob.call("GET", "/v1/me")).json()["usage"] == {"documents": 0, "bytes": 0}
            await ada.call("DELETE", f"/v1/documents/{document_row['id']}")
            less = (await ada.call("GET", "/v1/me")).json()["usage"]
            assert less["documents"] == 0 and 0 < less["bytes"] < used["bytes"]
            await ada.push("facts", dead(fact("f1")))
            assert (await ada.call("GET", "/v1/me")).json()["usage"] == {"documents": 0, "bytes": 0}
            check_problem(await browser(h).get("/v1/me"), 401, "SIGNED_OUT")

    run(scenario)


def test_tier_change_takes_effect_immediately(tmp_path):
    """The same token works under the new tier without a new sign-in."""

    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada = await h.person("FREE")
            question = {"query": "lease", "sessionId": "s1"}
            await ada.upload("lease.txt", "The lease ends in March.")
            detail = check_problem(await ada.call("POST", "/v1/search", json=question), 403, "TIER")["detail"]
            assert "search" in detail.lower() and len(detail.split()) >= 5 and detail.rstrip().endswith(".")
            big = "word " * 500_000
            check_problem(await ada.upload("big.txt", big), 413, "TOO_LARGE")
            free = (await ada.call("GET", "/v1/me")).json()["limits"]

            changed = await admin.patch(f"/v1/accounts/{ada.id}", json={"tier": "JIVE"})
            assert (changed.status_code, changed.json()["account"]["tier"]) == (200, "JIVE")
            assert (await ada.search("lease"))["results"]
            me = (await ada.call("GET", "/v1/me")).json()
            assert me["tier"] == "JIVE" and me["limits"]["storageBytes"] > free["storageBytes"]
            assert me["limits"]["searchesDocuments"] and not free["searchesDocuments"]

            await admin.patch(f"/v1/accounts/{ada.id}", json={"tier": "FREE"})
            check_problem(await ada.call("POST", "/v1/search", json=question), 403, "TIER")
            assert len(await ada.live("documents")) == 1, "documents must stay after a downgrade"
            await admin.patch(f"/v1/accounts/{ada.id}", json={"tier": "JIVE"})
        async with serve(tmp_path) as h:
            assert h.services.accounts.accounts[ada.id].tier == "JIVE"

    run(scenario)


def test_unknown_tier_is_rejected(tmp_path):
    async def scenario():
        async with serve(tmp_path) as h:
            admin = await owner(h)
            ada = await h.person("FREE")
            check_problem(
                await admin.patch(f"/v1/accounts/{ada.id}", json={"tier": "GOLD"}), 400, "BAD_REQUEST"
            )
            check_problem(
                await admin.patch(f"/v1/accounts/{ada.id}", json={"admin": True}), 400, "BAD_REQUEST"
            )
            check_problem(
                await admin.post("/v1/accounts", json={"email": "x@example.org", "tier": "G"}),
                400,
                "BAD_REQUEST",
            )
            assert h.services.accounts.accounts[ada.id].tier == "FREE"
            check_problem(await admin.patch("/v1/accounts/nobody", json={"tier": "JIVE"}), 404, "NOT_FOUND")

    run(scenario)
