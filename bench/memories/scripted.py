"""Run a scripted language model that extracts the statement that a turn asks to remember.

    python -m memories.scripted

It prints its port and can stream its reply. A reply contains the statement twice: in `memories`, which our server
reads, and in `memory`, which mem0 reads. The model replies without delay, so that only the time of our server or mem0
counts.
"""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "scripted"
ASKED = "Please remember this: "
_STATEMENT = re.compile(re.escape(ASKED) + r"(.+)")
_NEW = "## New Messages"  # heading in mem0's prompt after which the new messages start


def reply(question: str) -> str:
    said = _STATEMENT.search(question.rpartition(_NEW)[2])
    texts = [said[1].strip()] if said is not None else []
    return json.dumps({"memories": texts, "memory": [{"text": text} for text in texts]})


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._answer("application/json", json.dumps({"data": [{"id": MODEL}]}))

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = reply(asked["messages"][-1]["content"])
        if asked.get("stream"):
            piece = {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]}
            self._answer("text/event-stream", f"data: {json.dumps(piece)}\n\ndata: [DONE]\n\n")
        else:
            message = {"role": "assistant", "content": text}
            choice = {"index": 0, "message": message, "finish_reason": "stop"}
            self._answer("application/json", json.dumps({**_FRAME, "choices": [choice]}))

    def _answer(self, kind: str, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Do not log requests, because the time for logging would be measured, too."""


_FRAME = {"id": "scripted", "object": "chat.completion", "created": 0, "model": MODEL}


class Server(ThreadingHTTPServer):
    request_queue_size = 64


def main() -> None:
    server = Server(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
