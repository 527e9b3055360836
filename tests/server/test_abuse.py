"""Invalid requests are refused by name, without harm, and without internals in the answer."""

import gzip
import json
import os
import socket
import zlib
from collections.abc import Iterator

import httpx
import pytest

from tape.server.http.route import Route
from tape.server.routes.table import ROUTES
from tests.contract.events import upto
from tests.deadlines import DEADLINE_S
from tests.server.conftest import Start
from tests.server.reading import ids, open_stream, publish
from tests.server.server import TapeServer
from tests.servers.postgres import PostgresServer

POST = b"POST /runs HTTP/1.1\r\nhost: localhost\r\n"
JSON = {"content-type": "application/json"}
IDS = ["../../x", "a\0b", "%00", "x" * 300, "/etc/passwd", ".hidden", "a b", "ü", "a/b", "tape.value.1"]
INJECTIONS = [
    "' OR '1'='1", "'; DROP TABLE tape_journal; --", '" OR ""="', "1; SELECT pg_sleep(9)", "\\'; --", "$$; --", "%27",
    "' UNION SELECT NULL, NULL --", "{{7*7}}", "${jndi:ldap://x}", "*/ OR 1=1 /*", "0x27", ":name", "%(name)s", "$1",
]  # fmt: skip
WHOLE = [
    route
    for route in ROUTES
    if route.method == "GET" and not route.is_stream and "{" not in route.path.replace("{run_id}", "")
]
HOSTILE = "\x1b[2J \x1b]0;x\x07 \r\n \u202e \u200b"


@pytest.fixture
def run(lasting: httpx.Client, run_id: str) -> str:
    lasting.post("/runs", json={"run_id": run_id})
    return run_id


@pytest.fixture
def line(lasting_server: TapeServer) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", lasting_server.port), timeout=DEADLINE_S) as line:
        yield line


def send_raw(line: socket.socket, data: bytes) -> bytes:
    """Everything the server answers until it hangs up."""
    line.sendall(data)
    return b"".join(iter(lambda: line.recv(65536), b""))


def code(response: httpx.Response) -> tuple[int, str]:
    assert response.headers["content-type"] == "application/problem+json"
    assert len(response.json()["trace_id"]) == 32
    return response.status_code, response.json()["code"]


def raw_code(answer: bytes) -> tuple[int, str]:
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"application/problem+json" in head and b"connection: close" in head
    return int(head.split()[1]), json.loads(body)["code"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:7880", "localhost:x", ""])
def test_a_foreign_host_is_misdirected_on_every_route(lasting: httpx.Client, host: str) -> None:
    assert code(lasting.get("/nowhere", headers={"host": host})) == (421, "misdirected_request")


@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS", "PATCH"])
def test_a_foreign_origin_may_ask_nothing(lasting: httpx.Client, method: str) -> None:
    answer = lasting.request(method, "/runs", headers={"origin": "http://evil.example"})

    assert code(answer) == (403, "origin_not_allowed")
    assert "access-control-allow-origin" not in answer.headers


def test_an_origin_on_the_list_may_ask_and_read(tmp_path_factory: pytest.TempPathFactory) -> None:
    allowed = {"TAPE_ALLOWED_ORIGINS": "http://localhost:5173"}
    with TapeServer(tmp_path_factory.mktemp("x"), "memory://", environment=allowed) as server, server.client() as http:
        asked = http.options(
            "/runs", headers={"origin": "http://localhost:5173", "access-control-request-method": "POST"}
        )
        opened = http.post("/runs", headers={"origin": "http://localhost:5173"})

    assert (asked.status_code, opened.status_code) == (204, 201)
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert opened.headers["access-control-allow-origin"] == "http://localhost:5173"
    assert "access-control-allow-credentials" not in {**asked.headers, **opened.headers}


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-www-form-urlencoded", "", "application/jsonx"])
def test_a_form_cannot_append(lasting: httpx.Client, run: str, media_type: str) -> None:
    headers = {"content-type": media_type, "cookie": "a=b"}

    answer = lasting.post(f"/runs/{run}/events", content=b'{"payload": 1}', headers=headers)

    assert code(answer) == (415, "unsupported_media_type")


def test_a_bomb_is_refused_and_leaves_no_memory_behind(
    lasting_server: TapeServer, lasting: httpx.Client, run: str
) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    bomb = b"".join([*(packer.compress(bytes(1 << 24)) for _ in range(16)), packer.flush()])
    before = lasting_server.rss

    answers = [
        lasting.post(f"/runs/{run}/events", content=data, headers={**JSON, "content-encoding": "gzip"})
        for data in (bomb, gzip.compress(bomb))
    ]

    assert [answer.status_code for answer in answers] == [413, 413]
    assert lasting_server.rss - before < 50 << 20


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "zstd"])
def test_another_encoding_is_not_read(lasting: httpx.Client, run: str, encoding: str) -> None:
    answer = lasting.post(f"/runs/{run}/events", content=b"{}", headers={**JSON, "content-encoding": encoding})

    assert code(answer) == (415, "unsupported_media_type")


def test_a_packed_body_is_read(lasting: httpx.Client, run: str) -> None:
    body = gzip.compress(json.dumps({"payload": os.urandom(1000).hex()}).encode())

    answer = lasting.post(f"/runs/{run}/events", content=body, headers={**JSON, "content-encoding": "gzip"})

    assert answer.status_code == 201


@pytest.mark.parametrize("chunked", [True, False])
def test_a_body_over_the_limit_is_413(lasting: httpx.Client, run: str, chunked: bool) -> None:
    body = b'{"payload":"' + b"x" * (8 << 20) + b'"}'

    answer = lasting.post(f"/runs/{run}/events", content=iter([body]) if chunked else body, headers=JSON)

    assert code(answer) == (413, "too_large")
    assert lasting.get("/health").status_code == 200


def test_payloads_and_batches_have_their_limits(lasting: httpx.Client, run: str) -> None:
    largest = {"payload": "x" * (1_048_576 - 2)}

    assert lasting.post(f"/runs/{run}/events", json=largest).status_code == 201
    assert code(lasting.post(f"/runs/{run}/events", json={"payload": largest["payload"] + "x"})) == (413, "too_large")
    assert lasting.post(f"/runs/{run}/events", json=[{"payload": 1}] * 1000).status_code == 201
    assert code(lasting.post(f"/runs/{run}/events", json=[{"payload": 1}] * 1001)) == (413, "too_large")


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "json_limit"), (b"{", "json_limit"), (b'{"payload": NaN}', "json_limit"), (b"[]", "usage_error"),
        (b'{"payload": 1, "payload": 2}', "json_limit"), (b'{"payload": "\\u0000"}', "json_limit"),
        (b'{"payload": "\\ud800"}', "json_limit"), (b'{"payload": 1e999}', "json_limit"), (b"\xff\xfe", "json_limit"),
        (b'{"payload": 9223372036854775808}', "json_limit"), (b'\xef\xbb\xbf{"payload": 1}', "json_limit"),
        (b'{"payload":' + b"[" * 70 + b"]" * 70 + b"}", "json_limit"), (b"[" * 200_000, "json_limit"),
        (b'{"payload": 1, "kind": "run"}', "usage_error"), (b"{}", "usage_error"), (b"7", "usage_error"),
        (b'{"payload": 1, "type": 5}', "usage_error"),
        (b'{"payload": 1, "type": "goaway"}', "usage_error"), (b'{"payload": 1, "subject": ""}', "usage_error"),
    ],
)  # fmt: skip
def test_a_body_that_is_not_what_it_should_be_is_refused(
    lasting: httpx.Client, run: str, body: bytes, expected: str
) -> None:
    assert code(lasting.post(f"/runs/{run}/events", content=body, headers=JSON)) == (400, expected)


@pytest.mark.parametrize("name", IDS)
def test_a_run_id_is_never_a_path(lasting_server: TapeServer, lasting: httpx.Client, name: str) -> None:
    before = sorted(lasting_server.folder.rglob("*"))

    opened = lasting.post("/runs", json={"run_id": name})
    looked = lasting.get("/runs/" + "".join(f"%{byte:02X}" for byte in name.encode()))

    assert opened.status_code == 400
    assert looked.status_code in (400, 404)
    assert sorted(lasting_server.folder.rglob("*")) == before


@pytest.mark.parametrize("text", INJECTIONS)
def test_a_statement_in_a_field_is_just_text(lasting: httpx.Client, run: str, text: str) -> None:
    key = {"idempotency-key": text, "x-client-id": text, "traceparent": text}
    everywhere = dict.fromkeys(("run_id", "subject", "where", "from_seq", "limit", "epoch", "slow", "maxQueued"), text)

    appended = lasting.post(f"/runs/{run}/events", json={"payload": {text: text}}, headers=key)
    opened = lasting.post("/runs", json={"label": text, "app": text, "user": text, "session": text, "started_at": text})
    streamed = lasting.get("/events", params=everywhere)

    assert (appended.status_code, opened.status_code, streamed.status_code) == (201, 201, 400)
    assert lasting.get(opened.headers["location"]).json()["label"] == text


def test_no_field_ever_reaches_a_database_as_a_statement(start: Start, postgres_server: PostgresServer) -> None:
    with postgres_server.database() as url, start(url) as server, server.client() as http:
        http.post("/runs", json={"run_id": "r"})
        for text in INJECTIONS:
            http.post("/runs", json={"run_id": text, "label": text})
            http.post("/runs", json={"label": text, "app": text})
            http.post("/runs/r/events", json={"payload": {text: text}, "type": f"{text}'"})
            http.post("/runs/r/events", json={"payload": text}, headers={"idempotency-key": text, "x-client-id": text})
            http.get("/runs/" + "".join(f"%{byte:02X}" for byte in text.encode()))

        assert http.get("/runs/r").json()["last_seq"] == len(INJECTIONS)
    assert "syntax error" not in postgres_server.log


def test_hostile_text_is_escaped_in_answers_and_logs(
    lasting_server: TapeServer, lasting: httpx.Client, run: str
) -> None:
    label = lasting.post("/runs", json={"label": HOSTILE})
    subject = lasting.post(f"/runs/{run}/events", json={"payload": 1, "subject": HOSTILE})

    assert (label.status_code, subject.status_code) == (400, 400)
    assert all(answer.json()["detail"].isprintable() and answer.text.isascii() for answer in (label, subject))
    assert "\x1b" not in lasting_server.log and "\u202e" not in lasting_server.log


@pytest.mark.parametrize(
    ("request_bytes", "expected"),
    [
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 65_536 + b"\r\n\r\n", (431, "headers_too_large")),
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\nx: " + b"x" * 65_536, (431, "headers_too_large")),
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\n" + b"x: y\r\n" * 1000 + b"\r\n", (431, "headers_too_large")),
        (b"GET /" + b"x" * 16_384 + b" HTTP/1.1\r\nhost: localhost\r\n\r\n", (414, "uri_too_long")),
        (b"GET http://evil.example/health HTTP/1.1\r\nhost: localhost\r\n\r\n", (400, "bad_request")),
        (b"GET /health HTTP/1.1\r\nhost: localhost\r\n bad\r\n\r\n", (400, "bad_request")),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", (400, "bad_request")),
        (
            POST + b"content-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
            (400, "bad_request"),
        ),
        (
            b"POST /runs HTTP/1.1\r\nhost: localhost\r\ncontent-length: 4\r\ncontent-length: 5\r\n\r\nabcd",
            (400, "bad_request"),
        ),
    ],
)
def test_a_request_that_two_readers_could_read_differently_is_refused(
    line: socket.socket, request_bytes: bytes, expected: tuple[int, str]
) -> None:
    assert raw_code(send_raw(line, request_bytes)) == expected


def test_a_chunk_of_a_wrong_size_ends_the_connection(line: socket.socket) -> None:
    head = POST + b"content-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n"

    answer = send_raw(line, head + b"zz\r\n{}\r\n0\r\n\r\n")

    assert raw_code(answer) == (400, "bad_request")


def test_garbage_behind_a_request_does_not_take_its_answer(line: socket.socket) -> None:
    answer = send_raw(line, b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n\x00garbage")

    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 200")


def test_a_stream_with_garbage_in_its_body_takes_no_other_stream_with_it(
    lasting: httpx.Client, run: str, line: socket.socket
) -> None:
    with open_stream(lasting, "/events", run_id=run) as one, open_stream(lasting, "/events", run_id=run) as other:
        line.sendall(b"GET /events?run_id=%b HTTP/1.1\r\nhost: localhost\r\n" % run.encode())
        line.sendall(b"transfer-encoding: chunked\r\n\r\n")
        while b"replay_complete" not in line.recv(65536):
            pass
        publish(lasting, run, 1)
        line.sendall(b"not a chunk\r\n\r\n")
        for payload in range(2, 20):
            publish(lasting, run, payload)

        for listener in (one, other):
            listener.until(lambda frames: len(ids(frames)) >= 19)
            assert ids(listener.frames) == upto(19)
    while line.recv(65536):
        pass


def test_a_smuggled_request_is_not_answered(line: socket.socket) -> None:
    hidden = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    head = b"POST /runs HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding : chunked\r\ncontent-length: %d\r\n\r\n"

    answer = send_raw(line, head % len(hidden) + hidden)

    assert answer.count(b"HTTP/1.1 ") == 1 and answer.startswith(b"HTTP/1.1 400")


@pytest.mark.parametrize(
    "header", ["x-forwarded-for", "x-forwarded-host", "forwarded", "x-real-ip", "x-forwarded-proto"]
)
def test_headers_of_a_proxy_are_ignored(lasting: httpx.Client, header: str) -> None:
    assert lasting.get("/health", headers={header: "evil.example"}).status_code == 200
    assert code(lasting.get("/health", headers={header: "localhost", "host": "evil.example"})) == (
        421,
        "misdirected_request",
    )


def test_an_unknown_path_and_a_wrong_method_are_problems(lasting: httpx.Client) -> None:
    refused = lasting.delete("/runs")

    assert code(lasting.get("/nowhere")) == (404, "route_not_found")
    assert code(refused) == (405, "method_not_allowed")
    assert refused.headers["allow"] == "GET, HEAD, OPTIONS, POST"


def test_a_repeated_header_is_refused(lasting: httpx.Client, run: str) -> None:
    headers = [("expected-seq", "0"), ("expected-seq", "0"), ("content-type", "application/json")]

    assert code(lasting.post(f"/runs/{run}/events", content=b'{"payload": 1}', headers=headers)) == (400, "usage_error")


@pytest.mark.parametrize("text", ["-1", "x", "1.5", "9" * 30, "", "٣"])
def test_an_expected_seq_is_a_number(lasting: httpx.Client, run: str, text: str) -> None:
    headers = {b"expected-seq": text.encode()}

    assert code(lasting.post(f"/runs/{run}/events", json={"payload": 1}, headers=headers)) == (400, "usage_error")


@pytest.mark.parametrize("text", ["0", "1001", "x", "-1", ""])
def test_a_page_has_a_limit(lasting: httpx.Client, text: str) -> None:
    assert code(lasting.get("/runs", params={"limit": text})) == (400, "usage_error")


@pytest.mark.parametrize("route", WHOLE, ids=lambda route: route.path)
def test_a_head_is_a_get_without_its_body(lasting: httpx.Client, run: str, route: Route) -> None:
    path = route.path.replace("{run_id}", run)
    answer = lasting.head(path)

    assert (answer.status_code, answer.content) == (lasting.get(path).status_code, b"")
