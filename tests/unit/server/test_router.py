"""Routing: every path has one route, and an unknown one is refused with the known methods."""

import re

import pytest

from tape.core.errors import UsageError
from tape.server.http.errors import MethodNotAllowed, RouteNotFound
from tape.server.http.route import Route
from tape.server.http.router import Router
from tape.server.routes.table import ROUTES

router = Router(ROUTES)

NOWHERE = [b"", b"/runs/", b"//runs", b"/runs/a/b/c", b"/../runs", b"/runs/../runs", b"/RUNS", b"/health/", b"/.git"]


def test_a_named_part_is_decoded_once() -> None:
    route, values = router.find("GET", b"/runs/a%252Fb")

    assert (route.name, values) == ("showRun", {"run_id": "a%2Fb"})


def test_a_separator_that_is_escaped_separates_nothing() -> None:
    _, values = router.find("GET", b"/runs/..%2F..%2Fx")

    assert values == {"run_id": "../../x"}


@pytest.mark.parametrize("path", NOWHERE)
def test_nothing_lives_elsewhere(path: bytes) -> None:
    with pytest.raises(RouteNotFound):
        router.find("GET", path)


def test_a_wrong_method_gets_the_allowed_ones() -> None:
    with pytest.raises(MethodNotAllowed) as refused:
        router.find("DELETE", b"/runs")

    assert refused.value.allowed == ("GET", "HEAD", "OPTIONS", "POST")


def test_a_stream_has_no_head_alone() -> None:
    with pytest.raises(MethodNotAllowed):
        router.find("HEAD", b"/events")


def test_a_path_that_is_not_text_is_refused() -> None:
    with pytest.raises(UsageError):
        router.find("GET", b"/runs/%ff%fe")


def test_every_route_has_a_name_of_its_own() -> None:
    names = [route.name for route in ROUTES]

    assert sorted(set(names)) == sorted(names)


@pytest.mark.parametrize("path", [b"/outbox/replay", b"/tasks/replay"])
def test_a_literal_segment_wins_over_a_named_one(path: bytes) -> None:
    with pytest.raises(MethodNotAllowed) as refused:
        router.find("GET", path)

    assert refused.value.allowed == ("OPTIONS", "POST")


@pytest.mark.parametrize("route", ROUTES, ids=lambda route: f"{route.method} {route.path}")
def test_every_route_is_found_by_its_own_path(route: Route) -> None:
    found, _ = router.find(route.method, re.sub(r"{\w+}", "0", route.path).encode())

    assert found is route
