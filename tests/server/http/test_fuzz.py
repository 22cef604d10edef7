"""Fuzz every route except the streams with requests that its OpenAPI schema allows or forbids.

The status, media type and schema of each response must be documented. Errors must be problem responses, but never 500.
The test uses the schema that the server returns, so it includes new routes automatically.
"""

import json
import os

import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from server.threaded_server import ThreadedServer

EXAMPLES = 200 if os.environ.get("SOAK") else 3
LEFT_OUT = ("/v1/sync/stream", "pullStream", "/v1/me", "/v1/sign-out")
CONFORMS = [status_code_conformance, content_type_conformance, response_schema_conformance]


class Served(ThreadedServer):
    """A server in a thread, and a client of its only account."""

    def __init__(self, data) -> None:
        super().__init__(data)
        self.person = self.ask(self.harness.person())
        self.schema = json.loads(json.dumps(self.harness.app.openapi_schema.to_schema()))

    def call(self, request):
        return self.ask(self.person.client.send(request))


def test_no_route_fails_on_fuzzed_requests(tmp_path):
    served = Served(tmp_path)
    defects: list[str] = []
    called = 0
    try:
        schema = schemathesis.openapi.from_dict(served.schema)
        for result in schema.get_all_operations():
            operation = result.ok()
            if any(part in operation.path for part in LEFT_OUT):
                continue
            called += 1
            _fuzz(served, operation, defects)
    finally:
        served.close()
    assert called > 25
    assert not defects, "\n".join(defects[:20])


def _fuzz(served, operation, defects) -> None:
    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case) -> None:
        request = case.as_transport_kwargs(base_url="http://test")
        headers = {
            k: v for k, v in (request.pop("headers", None) or {}).items() if k.lower() != "authorization"
        }
        request.pop("cookies", None)
        try:
            ready = served.person.client.build_request(headers=headers, **request)
            ready.read()
        except (
            UnicodeError,
            ValueError,
            AttributeError,
            TypeError,
        ):  # the client itself cannot encode the request
            return
        answer = served.call(ready)
        if answer.status_code >= 500 and answer.status_code != 503:
            defects.append(f"{operation.method} {operation.path}: {answer.status_code} {str(request)[:300]}")
        if answer.status_code >= 400:
            body = answer.json()
            if not (isinstance(body, dict) and body.get("error") is True and body.get("code")):
                defects.append(
                    f"{operation.method} {operation.path}: {answer.status_code} is no problem: {body}"
                )
        try:
            case.validate_response(answer, checks=CONFORMS)
        except FailureGroup as group:
            defects.extend(
                f"{operation.method} {operation.path}: {answer.status_code} {failure}"
                for failure in group.exceptions
            )

    import hypothesis

    hypothesis.given(case=operation.as_strategy())(one)()
