"""The entry point of `tape`: it handles signals before anything else is imported."""

from typing import NoReturn

from tape.cli.interrupts import interrupts


def main() -> NoReturn:
    interrupts.listen()
    from tape.cli.main import main as begin

    begin()


if __name__ == "__main__":
    main()
