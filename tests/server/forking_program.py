"""A program with a gRPC connection that starts processes in every way; it prints the outcomes."""

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import tape
from tape.sdk.nouns.blocking import Node


def main(kind: str, url: str, count: int) -> None:
    with tape.connect(url) as node:
        node.values.set("forks", "k", 1)
        stop = threading.Event()
        busy = threading.Thread(target=call, args=(node, stop), daemon=True)
        busy.start()
        outcomes = [WAYS[kind](node, url) for _ in range(count)]
        stop.set()
        busy.join()
        print(*sorted({*outcomes, f"parent {node.values.get('forks', 'k')}"}), sep="\n", flush=True)


def call(node: Node, stop: threading.Event) -> None:
    """Keeps gRPC's threads busy while the process forks."""
    while not stop.is_set():
        node.values.get("forks", "k")


def exec_as_another(node: Node, url: str) -> str:
    done = subprocess.run(["true"], preexec_fn=os.getpid, capture_output=True, check=False)
    return f"exit {done.returncode}"


def fork_and_use(node: Node, url: str) -> str:
    return in_child(lambda: node.values.get("forks", "k"))


def fork_and_connect(node: Node, url: str) -> str:
    return in_child(lambda: connect(url))


def fork_and_embed(node: Node, url: str) -> str:
    return in_child(lambda: connect("memory://"))


def fork_and_leave(node: Node, url: str) -> str:
    """The child exits, which leaves the block of the connection."""
    if (child := os.fork()) == 0:  # noqa: TID251 - this is what is tested
        sys.exit(0)
    _, status = os.waitpid(child, 0)
    return f"exit {status}"


def connect(url: str) -> None:
    with tape.connect(url) as node:
        node.values.set("forks", "k", 2)


def in_child(work: Callable[[], object]) -> str:
    """The outcome of some work in a forked process."""
    read, write = os.pipe()
    if (child := os.fork()) == 0:  # noqa: TID251 - this is what is tested
        try:
            work()
            answer = "done"
        except tape.UsageError as error:
            answer = f"UsageError {error}"
        except BaseException as error:
            answer = repr(error)
        os.write(write, answer.encode())
        os._exit(0)
    os.close(write)
    os.waitpid(child, 0)
    with os.fdopen(read) as answers:
        return answers.read()


WAYS = {
    each.__name__: each for each in (exec_as_another, fork_and_use, fork_and_connect, fork_and_embed, fork_and_leave)
}

if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
