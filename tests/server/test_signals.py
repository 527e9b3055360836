"""Signals over HTTP: to a run or to a session, and once for each key."""

from typing import Any

import httpx
import pytest

from tape.core.run_state import Invocation

KEY = "idempotency-key"


@pytest.fixture
def session(run_id: str) -> dict[str, str]:
    """The names of a session that no other test uses."""
    return {"app": "shop", "user": "ann", "session": run_id}


@pytest.fixture
def run(lasting: httpx.Client, session: dict[str, str]) -> str:
    """A run that was begun in the session."""
    begun = lasting.post("/runs/-/begin", json={**session, "invocation": "one"})
    assert begun.status_code == 200
    return str(Invocation(**session, invocation="one").run_id)


def resolutions(http: httpx.Client, run: str) -> Any:
    found = http.get(f"/runs/{run}/gates/approval")
    return [] if found.status_code == 404 else found.json()["resolutions"]


def test_a_signal_finds_the_newest_run_of_a_session(lasting: httpx.Client, session: dict[str, str], run: str) -> None:
    sent = lasting.post("/runs/-/gates/approval", json={**session, "resolution": "yes"})

    assert (sent.status_code, sent.json()["run_id"]) == (200, run)
    assert resolutions(lasting, run) == ['"yes"']


def test_a_gate_may_be_named_like_no_run(lasting: httpx.Client, run: str) -> None:
    sent = lasting.post(f"/runs/{run}/gates/-", json={"resolution": "yes"})

    assert (sent.status_code, sent.json()["run_id"]) == (200, run)
    assert lasting.get(f"/runs/{run}/gates/-").json()["resolutions"] == ['"yes"']


@pytest.mark.parametrize("name", ["app", "user", "session"])
def test_a_signal_goes_to_a_run_or_to_a_session(lasting: httpx.Client, run: str, name: str) -> None:
    sent = lasting.post(f"/runs/{run}/gates/approval", json={name: "other", "resolution": "yes"})

    assert (sent.status_code, sent.json()["detail"]) == (400, "name a run or a session, not both")
    assert resolutions(lasting, run) == []


def test_a_key_in_the_header_and_another_one_in_the_body_are_refused(lasting: httpx.Client, run: str) -> None:
    answers = [
        lasting.post(f"/runs/{run}/gates/approval", json={"resolution": 1, "key": run}, headers={KEY: key})
        for key in (f"{run}-2", run)
    ]

    assert [each.status_code for each in answers] == [400, 200]
    assert answers[0].json()["detail"] == f"the header has the key '{run}-2' and the body '{run}'; give one of them"
    assert resolutions(lasting, run) == ["1"]


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_a_key_that_clients_encode_differently_is_no_header(lasting: httpx.Client, run: str, encoding: str) -> None:
    key = f"é-{run}"

    sent = lasting.post(
        f"/runs/{run}/gates/approval", json={"resolution": 1}, headers={KEY.encode(): key.encode(encoding)}
    )
    for _ in range(2):
        assert lasting.post(f"/runs/{run}/gates/approval", json={"resolution": 1, "key": key}).status_code == 200

    assert (sent.status_code, sent.json()["code"]) == (400, "usage_error")
    assert resolutions(lasting, run) == ["1"]


def test_no_route_takes_a_key_that_clients_encode_differently(lasting: httpx.Client, run: str) -> None:
    headers = {KEY.encode(): "é".encode()}

    answers = [
        lasting.post(f"/runs/{run}/events", json={"payload": 1}, headers=headers),
        lasting.put(f"/values/signals/{run}", json={"value": 1}, headers=headers),
        lasting.delete(f"/values/signals/{run}", headers=headers),
    ]

    assert [each.status_code for each in answers] == [400, 400, 400]
