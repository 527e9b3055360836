"""The page's files, as the server gives them."""

from pathlib import Path

import httpx
import pytest

from tests.architecture.tree import PACKAGE

CONSOLE = PACKAGE / "console"
TYPES = {".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml", ".txt": "text/plain"}
SERVED = [path for path in sorted(CONSOLE.rglob("*")) if path.suffix in TYPES]
ELSEWHERE = [
    "/assets/",
    "/assets/nothing.js",
    "/assets/..%2Fsettings.py",
    "/assets/..%2f..%2f..%2fpyproject.toml",
    "/assets/vendor/..%2F..%2Fsettings.py",
    "/assets/%2e%2e/settings.py",
    "/assets/vendor%2Fpreact-htm.js/x",
    "/assets/vendor/README.md",
    "/assets//main.js",
    "/assets/%2Fetc%2Fpasswd",
    "/assets/main.js%00",
]


def test_the_page_may_load_and_ask_nothing_but_this_server(lasting: httpx.Client) -> None:
    page = lasting.get("/")

    policy = dict(rule.strip().partition(" ")[::2] for rule in page.headers["content-security-policy"].split(";"))

    assert page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["x-content-type-options"] == "nosniff" and page.headers["referrer-policy"] == "no-referrer"
    assert {policy[name] for name in ("default-src", "script-src", "style-src", "connect-src")} == {"'self'"}
    assert {policy[name] for name in ("object-src", "base-uri", "form-action", "frame-ancestors")} == {"'none'"}
    assert policy["require-trusted-types-for"] == "'script'" and "unsafe" not in page.headers["content-security-policy"]


@pytest.mark.parametrize("path", SERVED, ids=lambda path: path.name)
def test_every_file_is_served_with_its_type_and_the_policy(lasting: httpx.Client, path: Path) -> None:
    given = lasting.get(f"/assets/{path.relative_to(CONSOLE)}")

    assert given.status_code == 200 and given.content == path.read_bytes()
    assert given.headers["content-type"].split(";")[0] == TYPES[path.suffix]
    assert given.headers["x-content-type-options"] == "nosniff" and "content-security-policy" in given.headers


def test_a_file_that_has_not_changed_is_not_sent_again(lasting: httpx.Client) -> None:
    first = lasting.get("/assets/main.js")

    again = lasting.get("/assets/main.js", headers={"if-none-match": first.headers["etag"]})

    assert first.headers["cache-control"] == "no-cache"
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]


@pytest.mark.parametrize("path", ELSEWHERE)
def test_no_path_leads_out_of_the_page(lasting: httpx.Client, path: str) -> None:
    answer = lasting.get(path)

    assert answer.status_code == 404 and answer.json()["code"] == "route_not_found"


def test_a_page_of_another_site_gets_nothing(lasting: httpx.Client) -> None:
    assert lasting.get("/", headers={"host": "evil.example"}).status_code == 421
