"""The served OpenAPI document, and checks of responses against it."""

import re

import jsonschema_rs


class ServedDocument:
    """The served document. `check` validates a response against it, and `checked` names the operations checked so far."""

    def __init__(self, document):
        self.document = document
        self.operations = {
            operation["operationId"]: {"method": method, "path": path, **operation}
            for path, item in document["paths"].items()
            for method, operation in item.items()
        }
        self.checked = set()

    async def call(self, person, name, status=200, *, path=(), **request):
        operation = self.operations[name]
        place = re.sub(r"{(\w+)}", lambda found: str(dict(path)[found[1]]), operation["path"])
        answer = await person.call(operation["method"].upper(), place, **request)
        assert answer.status_code == status, (name, answer.text)
        self.check(name, answer)
        return answer

    def check(self, name, answer):
        self.checked.add(name)
        content_types = self.operations[name]["responses"][str(answer.status_code)]["content"]
        media = answer.headers["content-type"].split(";")[0]
        assert list(content_types) == [media], name
        if media.endswith("json"):
            self.validate(content_types[media]["schema"], answer.json())

    def validate(self, schema, value):
        complete = {**schema, "components": self.document["components"]}
        jsonschema_rs.validator_for(complete).validate(value)


async def load_document(h, person):
    return ServedDocument((await person.call("GET", "/schema/openapi.json")).json())
