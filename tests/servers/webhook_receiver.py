"""A receiver of webhooks: keeps what it is sent, refuses what it cannot book, and says when it is busy."""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock

writing = Lock()


class Receiver(BaseHTTPRequestHandler):
    """A request is written down, whole, before it is answered."""

    folder: Path
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"])).decode()
        if (self.folder / "busy").exists():
            self._answer(503, "too much to do", {"Retry-After": "0"})
        elif self.path == "/moved":
            self._answer(302, "", {"Location": "http://169.254.169.254/latest/meta-data"})
        elif "mute" in body:
            self.rfile.read()  # until the other side hangs up
        elif "endless" in body:
            self._keep({"headers": {name.lower(): value for name, value in self.headers.items()}, "body": body})
            self._answer(200, "so", {"Content-Length": "1000000"})
            self.rfile.read()
        elif "poison" in body:
            self._answer(422, "no such account")
        else:
            self._keep({"headers": {name.lower(): value for name, value in self.headers.items()}, "body": body})
            self._answer(204, "")

    def _keep(self, fields: dict[str, object]) -> None:
        with writing, (self.folder / "accepted.jsonl").open("a") as file:
            file.write(json.dumps(fields) + "\n")

    def _answer(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        if status != 204 and "Content-Length" not in (headers or {}):
            self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:
        return


def main() -> None:
    Receiver.folder = Path(sys.argv[2])
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Receiver).serve_forever()
