"""Push and pull rows of `facts` with one account's token."""

from __future__ import annotations

import asyncio

import httpx


def authorization(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


async def push(client: httpx.AsyncClient, token: str, row: dict[str, object]) -> int:
    """Push a row and return the status: 200, or 503 with a problem document."""
    body = [{"newDocumentState": row}]
    response = await client.post("/v1/sync/facts/0/push", json=body, headers=authorization(token))
    assert response.status_code in (200, 503), response.text
    if response.status_code == 503:
        assert response.headers["content-type"].startswith("application/problem+json")
    return response.status_code


async def push_until_stored(client: httpx.AsyncClient, token: str, row: dict[str, object]) -> None:
    async with asyncio.timeout(60):
        while await push(client, token, row) != 200:
            await asyncio.sleep(0.05)


async def pull_ids(client: httpx.AsyncClient, token: str) -> set[str]:
    """Return the ids of all rows, tombstones included."""
    path = "/v1/sync/facts/0/pull?lwt=0&limit=1000"
    response = await client.get(path, headers=authorization(token))
    return {row["id"] for row in response.json()["documents"]}
