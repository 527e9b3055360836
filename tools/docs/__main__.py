"""`make docs`: builds the pages of the repository and a generated reference as a site that needs no server."""

import sys

from tools.docs.site import ROOT, build


def main() -> int:
    into = ROOT / "build" / "docs"
    faults = build(into)
    for fault in faults:
        print(f"tape: {fault}")
    print(f"tape: open {(into / 'index.html').relative_to(ROOT)}")
    return int(bool(faults))


sys.exit(main())
