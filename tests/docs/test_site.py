"""The site is whole: every link leads somewhere, and what is made from code says what the code says."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from tape.cli.doctor.postgres import SAFE
from tape.settings import NAMES, Settings
from tape.telemetry import Meters
from tests.architecture.tree import ROOT
from tools.docs import performance, reference
from tools.docs.drawings import FOLDER, WALKS, Walk, draw
from tools.docs.site import Page, build, pages, resolve, slug


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    folder = tmp_path_factory.mktemp("site") / "docs"
    return folder, build(folder)


def test_no_link_leads_nowhere(site: tuple[Path, list[str]]) -> None:
    assert site[1] == []


def test_every_page_is_a_page_of_the_site(site: tuple[Path, list[str]]) -> None:
    written = [path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]

    assert [str(path) for path in written if not (site[0] / path).is_file()] == []


def test_every_link_of_the_built_site_is_a_file_in_it(site: tuple[Path, list[str]]) -> None:
    broken = []
    for page in site[0].rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#:]+)[#"]', page.read_text()):
            if not (page.parent / link).exists():
                broken.append(f"{page.relative_to(site[0])}: {link}")

    assert broken == []


@pytest.mark.parametrize("link", ["gone.md", "#gone", "glossary.md#gone", "../nothing.png"])
def test_a_dead_link_is_found(link: str, tmp_path: Path) -> None:
    page = Page(path=Path("docs/new.md"), text=f"# New\n\n[there]({link})\n")
    found = {each.path: each for each in [*pages(), page]}

    assert len(list(resolve(page, found, tmp_path))) == 1


def test_a_page_is_listed_where_readers_begin() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    written = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    unlisted = [path for path in written if f"]({path})" not in index and not path.startswith("adr/0")]

    assert unlisted == ["README.md"]


def test_hidden_comments_stay_hidden_and_markup_in_a_page_is_text() -> None:
    page = Page(path=Path("x.md"), text="<!-- before\nsecret\n-->\n# A\n\n<script>alert(1)</script>\n")
    shown = "".join(token.content for token in page.tokens)

    assert "secret" not in shown
    assert not any(token.type in ("html_block", "html_inline") for token in page.tokens)


@pytest.mark.parametrize(
    ("heading", "name"), [("The node", "the-node"), ("`GET /a`, b?", "get-a-b"), ("1. On", "1-on")]
)
def test_a_heading_has_the_name_that_github_gives_it(heading: str, name: str) -> None:
    assert slug(heading) == name


@pytest.mark.parametrize("walk", WALKS, ids=lambda walk: walk.name)
def test_a_walk_is_drawn_as_it_is_described(walk: Walk) -> None:
    assert (FOLDER / f"{walk.name}.svg").read_text() == draw(walk)


def test_the_reference_has_every_command() -> None:
    page = reference.pages()["reference/cli.md"]
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)

    assert headings == [" ".join(path) for path, _, _ in reference.commands()]
    assert {"tape serve", "tape outbox replay", "tape doctor"} <= set(headings)


@pytest.mark.parametrize("name", sorted(NAMES - {"connections"}))
def test_every_setting_stands_in_the_table(name: str) -> None:
    assert f"| `TAPE_{name.upper()}` |" in (ROOT / "docs" / "settings.md").read_text()


def test_the_table_of_settings_has_no_other() -> None:
    listed = re.findall(r"^\| `TAPE_([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)

    assert {name.lower() for name in listed} == NAMES - {"connections"}


@pytest.mark.parametrize("name", ["data", "http", "grpc", "url", "broker_backend", "spark_master", "generation"])
def test_the_table_says_the_default(name: str) -> None:
    default = getattr(Settings.read({}), name)

    assert f"| `TAPE_{name.upper()}` | `{default}` |" in (ROOT / "docs" / "settings.md").read_text()


def test_every_extra_stands_in_the_table_and_no_other() -> None:
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    first = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "installing.md").read_text(), re.MULTILINE)

    assert sorted(re.findall(r"`([a-z]+)`", " ".join(first))) == sorted(offered)


def test_whatever_the_doctor_looks_at_stands_in_its_table() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "src" / "tape" / "cli").glob("doctor*.py"))
    subjects = re.findall(r'(?:Finding|look_at_disk|_mode)\(\s*"([a-z -]+)"', code) + list(SAFE) + ["cel", "uvloop"]
    table = " ".join(re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "doctor.md").read_text(), re.MULTILINE))

    assert {subject for subject in subjects if f"`{subject}`" not in table} == set()
    assert set(re.findall("`([^`]+)`", table)) <= set(subjects)


def test_every_metric_stands_in_the_table_with_its_help() -> None:
    page = (ROOT / "docs" / "signals.md").read_text()

    assert [meter.name for meter in Meters().all() if f"| `{meter.name}` |" not in page] == []


def test_every_error_family_of_the_journal_page_has_its_numbers() -> None:
    rows = re.findall(r"^\| `(\w+)`.*? \| (\d+) \| ([A-Z_]+) \| (\d+) \|", (ROOT / "docs/journal.md").read_text(), re.M)
    known = {each.__name__: each for each in reference.error_classes()}

    wrong = [row for row in rows if (known[row[0]].http_status, known[row[0]].grpc_status) != (int(row[1]), row[2])]
    assert rows and wrong == []
    assert [row for row in rows if known[row[0]].exit_code != int(row[3])] == []


def test_the_performance_page_has_every_row_and_names_the_missed_goals() -> None:
    measured = json.loads(performance.LATEST.read_text())
    page = performance.pages()["performance.md"]

    assert [row["name"] for row in measured["rows"] if f"| {row['name']} |" not in page] == []
    missed = [row for row in measured["rows"] if row["met"] is False]
    assert page.count("| **no** |") == len(missed)
    assert [row["name"] for row in missed if f"- {row['area']}: {row['name']}: " not in page] == []


def test_the_performance_page_says_how_far_the_repetitions_lie_apart() -> None:
    row = {"area": "a", "name": "n", "ours": 2.0, "peer": 1.0, "unit": "/s", "ratio": 2.0, "goal": ">= 3", "met": False}

    assert performance.line(row, {"a: n": [1.5, 2.5]}) == "| n | 2 | 1 | /s | 2 (1.5 to 2.5) | >= 3 | **no** |"
    assert "0 of 1 goals are met; missed are:" in performance.goals([row])
