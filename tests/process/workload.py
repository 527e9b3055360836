"""The requests of writers: the n-th request of a writer is always the same."""

from random import Random

from tape import Event

SHARED_RUNS = ("shared-a", "shared-b")


def key(writer: str, number: int) -> str:
    return f"{writer}-{number}"


def size(writer: str, number: int, most: int) -> int:
    return Random(key(writer, number)).randint(1, most)


def events(writer: str, number: int, most: int, padding: int = 0) -> list[Event]:
    """Up to `most` events, for the writer's own run and for runs that all of them write to."""
    name = key(writer, number)
    chance = Random(name)
    places = range(chance.randint(1, most))
    return [
        Event(
            run_id=chance.choice((writer, *SHARED_RUNS)),
            payload={"place": place, "padding": "x" * padding},
            event_id=f"{name}.{place}",
        )
        for place in places
    ]
