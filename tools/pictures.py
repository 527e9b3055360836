"""Copies the screenshots that the browser tests have saved to docs/pictures."""

from pathlib import Path
from shutil import copyfile

ROOT = Path(__file__).resolve().parent.parent
SHOTS = ROOT / "tests" / "browser" / "shots"
PICTURES = ROOT / "docs" / "pictures"
PICTURE_OF = {
    "console-backfill": "search-journey",
    "console-lake": "view-lake-wide-light",
    "console-live": "view-live-wide-light",
    "console-outbox": "view-outbox-wide-light",
    "console-phone": "view-tasks-phone-dark",
    "console-reaction": "view-reaction-wide-light",
    "console-run": "view-ledgers-wide-light",
    "console-system": "view-system-wide-light",
    "console-tasks": "view-replay-wide-light",
    "run": "page-event-wide-light",
    "side-by-side": "page-pair-wide-light",
}


def main() -> None:
    missing = sorted({shot for shot in PICTURE_OF.values() if not (SHOTS / f"{shot}.png").is_file()})
    if missing:
        raise SystemExit(f"run the tests in tests/browser first; they save {', '.join(missing)}")
    for picture, shot in PICTURE_OF.items():
        copyfile(SHOTS / f"{shot}.png", PICTURES / f"{picture}.png")
    print(f"copied {len(PICTURE_OF)} pictures")


if __name__ == "__main__":
    main()
