"""The five request paths as programs that are recorded: `python -m tests.internals.programs PATH STORE OUTPUT`.

Each does once what is slow the first time, then the same thing ten times, recorded each time, and then nothing for a
while: the last recording has what the program polls.
"""

import http.client
import json
import os
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import anyio

import tape
from tape.cli.main import run as run_command
from tape.outbox import OutboxEvent, OutboxListener, migrate, publish
from tape.work.envelope import Envelope
from tests.internals.recorder import Call, Recorder

WARM_UPS = 3
RECORDINGS = 10
IDLE_S = 2.0
DEADLINE_S = 60.0

Recordings = list[list[Call]]
Take = Callable[[int], None]


def record(recorder: Recorder, take: Take, recordings: Recordings) -> None:
    """Does a thing so often, numbered from 1 on, and records it once everything is warm."""
    for number in range(1, WARM_UPS + RECORDINGS + 1):
        time.sleep(0.05)  # what the last one left to be done is no part of this one
        recorder.start()
        take(number)
        calls = recorder.stop()
        if number > WARM_UPS:
            recordings.append(calls)
    recorder.start()
    time.sleep(IDLE_S)
    recordings.append(recorder.stop())


def publish_to_subscriber(recorder: Recorder, store: str, end: Callable[[Recordings], None]) -> None:
    """`POST /runs/{run_id}/events` until a subscriber of the run has the event and the publisher its answer."""
    port = free_port()

    def client() -> None:
        connection = connect(port)
        post(connection, "/runs", {"run_id": "r"})
        with Subscriber(port, "/events?run_id=r") as subscriber:

            def take(number: int) -> None:
                post(connection, "/runs/r/events", {"type": "message", "payload": {"n": number}})
                subscriber.read_until(f'"n":{number}')

            recordings: Recordings = []
            record(recorder, take, recordings)
        end(recordings)

    serve(store, port, client)


def reconnect(recorder: Recorder, store: str, end: Callable[[Recordings], None]) -> None:
    """`GET /events` with a Last-Event-ID until the browser has what it missed and is live again."""
    port = free_port()

    def client() -> None:
        connection = connect(port)
        post(connection, "/runs", {"run_id": "r"})
        for number in range(1, 6):
            post(connection, "/runs/r/events", {"type": "message", "payload": {"n": number}})

        def take(_: int) -> None:
            with Subscriber(port, "/events?run_id=r", last_event_id=2) as subscriber:
                subscriber.read_until("replay_complete")

        recordings: Recordings = []
        record(recorder, take, recordings)
        end(recordings)

    serve(store, port, client)


def publish_to_handler(recorder: Recorder, store: str, end: Callable[[Recordings], None]) -> None:
    """`journal.publish` until it has returned and the handler of a reaction was called, in one program."""
    handled = threading.Semaphore(0)

    @tape.on("/tape/event/message/**")
    async def handle(_: Envelope) -> None:
        handled.release()

    def publisher() -> None:
        anyio.run(publish_all)

    async def publish_all() -> None:
        async with tape.open_journal(store) as journal:

            async def take(number: int) -> None:
                await journal.append([tape.Event(run_id="r", type="message", payload={"n": number})], open=True)

            recordings: Recordings = []
            await anyio.to_thread.run_sync(
                partial(record, recorder, lambda n: (anyio.from_thread.run(take, n), handled.acquire())[0], recordings)
            )
            end(recordings)

    threading.Thread(target=publisher, daemon=True).start()
    tape.reactions.run_dispatcher(store)


def outbox_to_handler(recorder: Recorder, store: str, end: Callable[[Recordings], None]) -> None:
    """A commit of a business transaction with an event until the handler's transaction is committed."""
    file = urlsplit(store).path
    anyio.run(migrate, store)
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("CREATE TABLE invoices (number INTEGER)")

    async def write_invoice(event: OutboxEvent, connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO invoices VALUES (?)", (event.payload["number"],))

    def business() -> None:
        connection = sqlite3.connect(file, timeout=DEADLINE_S)

        def take(number: int) -> None:
            with connection:
                event = OutboxEvent(event_type="orders.placed", source="orders", payload={"number": number})
                publish(event, connection)
            wait_for(lambda: connection.execute("SELECT count(*) FROM invoices").fetchone()[0] == number)

        recordings: Recordings = []
        record(recorder, take, recordings)
        end(recordings)

    listener = OutboxListener(store)
    listener.listen(handler_name="billing.invoice_writer", handler=write_invoice)
    threading.Thread(target=business, daemon=True).start()
    anyio.run(listener.run)


def journal_to_lake(recorder: Recorder, store: str, end: Callable[[Recordings], None]) -> None:
    """`tape lake sync` copies an entry, `tape journal archive` deletes it, and a reader finds it in the lake."""
    folder = Path(urlsplit(store).path).parent
    lake = ["--store", store, "--lake", str(folder / "lake")]

    def take(number: int) -> None:
        publish_one = ["publish", "r", json.dumps({"n": number}), "--open", "--store", store]
        for command in (publish_one, ["lake", "sync", *lake], ["journal", "archive", *lake, "--keep", "0s"]):
            if code := run_command(command):
                raise SystemExit(f"tape {' '.join(command)} ended with {code}")
        run_command(["tail", "--no-follow", "--json", "--store", store])

    recordings: Recordings = []
    record(recorder, take, recordings)
    end(recordings)


PROGRAMS = {
    "publish-to-subscriber": publish_to_subscriber,
    "publish-to-handler": publish_to_handler,
    "outbox-to-handler": outbox_to_handler,
    "journal-to-lake": journal_to_lake,
    "reconnect": reconnect,
}


class Subscriber:
    """A stream as a browser reads it, on a socket of its own."""

    def __init__(self, port: int, path: str, last_event_id: int | None = None) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S)
        resume = "" if last_event_id is None else f"Last-Event-ID: {last_event_id}\r\n"
        request = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: text/event-stream\r\n{resume}\r\n"
        self._socket.sendall(request.encode())
        self._received = ""

    def read_until(self, text: str) -> None:
        while text not in self._received:
            chunk = self._socket.recv(65_536)
            if not chunk:
                raise SystemExit(f"the stream ended before {text}: {self._received}")
            self._received += chunk.decode()

    def __enter__(self) -> "Subscriber":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()


def serve(store: str, port: int, client: Callable[[], None]) -> None:
    threading.Thread(target=client, daemon=True).start()
    run_command(["serve", "--store", store, "--http", f"127.0.0.1:{port}", "--grpc", "127.0.0.1:0"])


def post(connection: http.client.HTTPConnection, path: str, body: object) -> None:
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    if answer.status >= http.client.BAD_REQUEST:
        raise SystemExit(f"POST {path} was answered {answer.status}: {text!r}")


def connect(port: int) -> http.client.HTTPConnection:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    wait_for(lambda: is_open(port))
    return connection


def is_open(port: int) -> bool:
    with closing(socket.socket()) as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0


def wait_for(is_true: Callable[[], bool]) -> None:
    until = time.monotonic() + DEADLINE_S
    while not is_true():
        if time.monotonic() > until:
            raise SystemExit("it took too long")
        time.sleep(0.005)


def free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def main(path: str, store: str, output: str) -> None:
    recorder = Recorder()
    recorder.install()

    def end(recordings: Recordings) -> None:
        Path(output).write_text(json.dumps([[asdict(call) for call in calls] for calls in recordings]))
        os._exit(0)

    PROGRAMS[path](recorder, store, end)


if __name__ == "__main__":
    main(*sys.argv[1:])
