"""The changelog is generated from the news fragments."""

from pathlib import Path

import pytest

from tools.changelog import CHANGELOG, KINDS, fragments, released, updated


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    (tmp_path / "tail.fixed.md").write_text("A tail\nends.\n")
    (tmp_path / "lake.added.md").write_text("A lake.\n")
    return fragments(tmp_path)


def test_the_changelog_has_every_fragment() -> None:
    changelog = CHANGELOG.read_text()

    assert changelog == updated(changelog, fragments()), "run make changelog"


@pytest.mark.parametrize("path", fragments(), ids=lambda path: path.name)
def test_a_fragment_has_a_known_kind_and_whole_sentences(path: Path) -> None:
    assert path.suffixes[0].removeprefix(".") in KINDS
    assert path.read_text().strip().endswith(".")


def test_fragments_are_grouped_by_kind(two: list[Path]) -> None:
    changelog = "# Changelog\n\n## Unreleased\n\nold\n\n## 0.1.0 (2026-01-01)\n"

    assert updated(changelog, two) == (
        "# Changelog\n\n## Unreleased\n\n### Added\n\n- A lake.\n\n### Fixed\n\n- A tail ends.\n\n"
        "## 0.1.0 (2026-01-01)\n"
    )


def test_a_release_leaves_an_empty_section_above_it(two: list[Path]) -> None:
    changelog = released("# Changelog\n\n## Unreleased\n\nold\n", two, "0.1.0", "2026-01-01")

    assert changelog.startswith("# Changelog\n\n## Unreleased\n\n## 0.1.0 (2026-01-01)\n\n### Added\n\n- A lake.\n")
