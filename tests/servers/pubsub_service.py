"""A loopback service that answers Publish as Pub/Sub's documentation says, with the client's own messages."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

import grpc
from google.pubsub_v1.types import PublishRequest, PublishResponse

MOST_KEY = 1_024
MOST_BYTES = 100_000  # the service's own limit is 10 MB


class Publisher(grpc.GenericRpcHandler):  # type: ignore[misc]
    """One method; what is acknowledged is on the disk."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = Lock()
        self._count = 0

    def service(self, details: Any) -> Any:
        if details.method != "/google.pubsub.v1.Publisher/Publish":
            return None
        return grpc.unary_unary_rpc_method_handler(self._publish, PublishRequest.deserialize, PublishResponse.serialize)

    def _publish(self, request: PublishRequest, context: grpc.ServicerContext) -> PublishResponse:
        if (self._folder / "busy").exists():
            context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "quota exceeded")
        if not request.topic.endswith("/topics/orders"):
            context.abort(grpc.StatusCode.NOT_FOUND, "Resource not found (resource=topic).")
        if any(len(each.data) > MOST_BYTES or len(each.ordering_key) > MOST_KEY for each in request.messages):
            context.abort(grpc.StatusCode.INVALID_ARGUMENT, "The value for message_size is too large.")
        with self._lock, (self._folder / "accepted.jsonl").open("a") as file:
            return PublishResponse(message_ids=[self._keep(file, each) for each in request.messages])

    def _keep(self, file: Any, message: Any) -> str:
        self._count += 1
        fields = {"body": message.data.decode(), "order": message.ordering_key, "headers": dict(message.attributes)}
        file.write(json.dumps(fields) + "\n")
        file.flush()
        os.fsync(file.fileno())
        return f"{os.getpid()}-{self._count}"


def main() -> None:
    server = grpc.server(ThreadPoolExecutor(8))
    server.add_generic_rpc_handlers((Publisher(Path(sys.argv[2])),))
    server.add_insecure_port(f"127.0.0.1:{sys.argv[1]}")
    server.start()
    server.wait_for_termination()
