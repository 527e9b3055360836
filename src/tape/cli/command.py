"""Where `tape` begins: it hears signals before anything is loaded."""

from typing import NoReturn

from tape.cli.interrupts import interrupts


def main() -> NoReturn:
    interrupts.listen()
    from tape.cli.main import main as begin

    begin()


if __name__ == "__main__":
    main()
