"""Settings: read once, checked, and nothing misspelt goes unnoticed."""

from pathlib import Path

import pytest

from tape.core.errors import UsageError
from tape.settings import Settings


def test_without_a_word_tape_lives_in_the_current_folder() -> None:
    settings = Settings.read({"HOME": "/nowhere"})

    here = "sqlite:///.tape/tape.db"
    assert settings == Settings(data=Path(".tape"), store=here, listen_url=None, unsafe_durability=False)


def test_a_data_folder_holds_the_store_whatever_its_name() -> None:
    assert Settings.read({"TAPE_DATA": "/a b/ü?"}).store == "sqlite:////a%20b/%C3%BC%3F/tape.db"


def test_a_misspelt_name_is_an_error() -> None:
    with pytest.raises(UsageError, match="TAPE_STROE"):
        Settings.read({"TAPE_STROE": "memory://"})


def test_names_of_tests_and_of_other_parts_are_let_be() -> None:
    others = {"TAPE_TEST_POSTGRES_URL": "x", "TAPE_LAKE": "y", "TAPE_GENERATION": "3"}

    assert Settings.read(others) == Settings.read({})


@pytest.mark.parametrize(("text", "expected"), [("1", True), ("true", True), ("0", False), ("", False)])
def test_a_flag_is_one_or_zero(text: str, expected: bool) -> None:
    assert Settings.read({"TAPE_UNSAFE_DURABILITY": text}).unsafe_durability is expected


def test_another_word_for_a_flag_is_an_error() -> None:
    with pytest.raises(UsageError, match="must be 1 or 0, not 'maybe'"):
        Settings.read({"TAPE_UNSAFE_DURABILITY": "maybe"})


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "tape.toml"
    file.write_text('store = "memory://"\ndata = "elsewhere"\nunsafe_durability = true\n')

    settings = Settings.read({"TAPE_CONFIG": str(file), "TAPE_DATA": "here"})

    assert settings == Settings(data=Path("here"), store="memory://", listen_url=None, unsafe_durability=True)


@pytest.mark.parametrize("text", ["stroe = 1", "store = ", ""])
def test_a_file_that_is_wrong_or_missing_is_an_error(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tape.toml"
    if text:
        file.write_text(text)

    with pytest.raises(UsageError):
        Settings.read({"TAPE_CONFIG": str(file)})
