"""The site has no dead links, and its generated pages agree with the code."""

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
from tools.docs.drawings import FOLDER, REQUEST_PATHS, RequestPath, draw
from tools.docs.site import Page, pages, resolve, slug


def test_the_site_has_no_dead_link(built: tuple[Path, list[str]]) -> None:
    assert built[1] == []


def test_every_page_is_in_the_site(site: Path) -> None:
    written = [path.relative_to(ROOT).with_suffix(".html") for path in (ROOT / "docs").rglob("*.md")]

    assert [str(path) for path in written if not (site / path).is_file()] == []


def test_every_link_of_the_built_site_is_a_file_in_it(site: Path) -> None:
    broken = []
    for page in site.rglob("*.html"):
        for link in re.findall(r'(?:href|src)="([^"#:]+)[#"]', page.read_text()):
            if not (page.parent / link).exists():
                broken.append(f"{page.relative_to(site)}: {link}")

    assert broken == []


@pytest.mark.parametrize("link", ["gone.md", "#gone", "glossary.md#gone", "../nothing.png"])
def test_a_dead_link_is_found(link: str, tmp_path: Path) -> None:
    page = Page(path=Path("docs/new.md"), text=f"# New\n\n[there]({link})\n")
    found = {each.path: each for each in [*pages(), page]}

    assert len(list(resolve(page, found, tmp_path))) == 1


def test_the_index_lists_every_page() -> None:
    index = (ROOT / "docs" / "README.md").read_text()
    written = [path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")]
    unlisted = [path for path in written if f"]({path})" not in index and not path.startswith("adr/0")]

    assert unlisted == ["README.md"]


def test_markup_in_a_page_is_text() -> None:
    page = Page(path=Path("x.md"), text="# A\n\n<script>alert(1)</script>\n")

    assert not any(token.type in ("html_block", "html_inline") for token in page.tokens)


@pytest.mark.parametrize(
    ("heading", "name"), [("The node", "the-node"), ("`GET /a`, b?", "get-a-b"), ("1. On", "1-on")]
)
def test_a_heading_has_the_anchor_that_github_gives_it(heading: str, name: str) -> None:
    assert slug(heading) == name


@pytest.mark.parametrize("path", REQUEST_PATHS, ids=lambda path: path.name)
def test_the_drawing_of_a_request_path_is_current(path: RequestPath) -> None:
    assert (FOLDER / f"{path.name}.svg").read_text() == draw(path)


def test_the_reference_has_every_command() -> None:
    page = reference.pages()["reference/cli.md"]
    headings = re.findall(r"^## (.+)$", page, re.MULTILINE)

    assert headings == [" ".join(path) for path, _, _ in reference.commands()]
    assert {"tape serve", "tape outbox replay", "tape doctor"} <= set(headings)


@pytest.mark.parametrize("name", sorted(NAMES - {"connections"}))
def test_every_setting_is_in_the_table(name: str) -> None:
    assert f"| `TAPE_{name.upper()}` |" in (ROOT / "docs" / "settings.md").read_text()


def test_the_table_of_settings_has_no_other() -> None:
    listed = re.findall(r"^\| `TAPE_([A-Z_]+)`", (ROOT / "docs" / "settings.md").read_text(), re.MULTILINE)

    assert {name.lower() for name in listed} == NAMES - {"connections"}


@pytest.mark.parametrize("name", ["data", "http", "grpc", "url", "broker_backend", "spark_master", "generation"])
def test_the_table_of_settings_has_the_default(name: str) -> None:
    default = getattr(Settings.read({}), name)

    assert f"| `TAPE_{name.upper()}` | `{default}` |" in (ROOT / "docs" / "settings.md").read_text()


def test_the_table_of_extras_is_complete() -> None:
    offered = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    first = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "installing.md").read_text(), re.MULTILINE)

    assert sorted(re.findall(r"`([a-z]+)`", " ".join(first))) == sorted(offered)


def test_the_table_of_the_doctor_is_complete() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "src" / "tape" / "cli" / "doctor").glob("*.py"))
    subjects = re.findall(r'(?:Finding|check_disk|_mode)\(\s*"([a-z -]+)"', code) + list(SAFE) + ["cel", "uvloop"]
    table = " ".join(re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs" / "doctor.md").read_text(), re.MULTILINE))

    assert {subject for subject in subjects if f"`{subject}`" not in table} == set()
    assert set(re.findall("`([^`]+)`", table)) <= set(subjects)


def test_the_table_of_metrics_is_complete() -> None:
    rows = re.findall(r"^\| `(tape_\w+)` \| .* \| (.+) \|$", (ROOT / "docs" / "signals.md").read_text(), re.MULTILINE)

    assert rows == [(meter.name, meter.help) for meter in Meters().all()]


def test_the_table_of_log_events_is_complete() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "src").rglob("*.py"))
    logged = set(re.findall(r'\blog\.(?:info|warning|error)\(\s*"([a-z_]+\.[a-z_]+)"', code))
    rows = re.findall(
        r"^\| ([^|]+) \| (?:info|warning|error)", (ROOT / "docs" / "signals.md").read_text(), re.MULTILINE
    )
    listed = set(re.findall(r"`([a-z_]+\.[a-z_]+)`", " ".join(rows)))

    assert logged - listed == set()
    assert {event for event in listed if f'"{event}"' not in code} == set()


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


MEASURED = {
    "table": "parts", "area": "a", "name": "n", "ours": 2.0, "peer": 1.0, "unit": "/s", "ratio": 2.0,
    "spread": [1.5, 2.5], "goal": ">= 3", "met": False, "conditions": {"load": 0.1, "turns": 5},
}  # fmt: skip


def test_the_performance_page_has_the_spread_of_the_turns_and_the_conditions_of_each_row() -> None:
    page = list(performance.page({"rows": [MEASURED]}))

    assert "| n | 2 | 1 | /s | 2 (1.5 to 2.5) | >= 3 | **no** |" in page
    assert "Conditions: load 0.1, turns 5." in page
    assert "0 of 1 goals are met; missed are:" in page


def test_the_performance_page_says_how_the_sides_of_users_paths_were_run() -> None:
    row = {**MEASURED, "table": "users", "goal": None, "met": None, "ours is": "`tape serve`", "peer is": "by hand"}

    page = list(performance.page({"rows": [row]}))

    assert page.index("- `tape serve`") < page.index("- by hand") < page.index("## Parts")
    assert "0 of 0 goals are met." in page
