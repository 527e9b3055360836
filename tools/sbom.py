"""Writes the bill of materials of Tape with all extras, as CycloneDX, from requirements/dev.lock."""

import json
import re
import sys
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "dev.lock"
TARGET = ROOT / "dist" / "sbom.cdx.json"
US = "tape-bus"

PINNED = re.compile(r"^([A-Za-z0-9._-]+)==(\S+)")
HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
VIA = re.compile(r"^\s+#\s+(?:via\s+)?(\S+)(.*)$")


class Pin(NamedTuple):
    """A locked package: the hashes of its files, and the packages that require it."""

    name: str
    version: str
    hashes: tuple[str, ...]
    wanted_by: frozenset[str]

    @property
    def reference(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


def main() -> int:
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(json.dumps(document(LOCK.read_text(), version()), indent=2) + "\n")
    print(f"tape: wrote {TARGET.relative_to(ROOT)}")
    return 0


def document(lock: str, ours: str) -> dict[str, Any]:
    """The bill of materials of Tape and its extras, without what only development needs."""
    pins = shipped({pin.name: pin for pin in parse(lock)})
    us = f"pkg:pypi/{US}@{ours}"
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": us,
                "name": US,
                "version": ours,
                "purl": us,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [component(pin) for pin in pins.values()],
        "dependencies": list(dependencies(us, pins)),
    }


def parse(lock: str) -> Iterator[Pin]:
    for block in re.split(r"^(?=[A-Za-z0-9])", lock, flags=re.MULTILINE):
        if pinned := PINNED.match(block):
            names = [via[1] for line in block.splitlines() if (via := VIA.match(line)) and via[1] != "via"]
            yield Pin(pinned[1], pinned[2], tuple(HASH.findall(block)), frozenset(names))


def shipped(pins: Mapping[str, Pin]) -> dict[str, Pin]:
    """The packages that Tape requires, directly or indirectly."""
    kept: set[str] = {US}
    while more := {name for name, pin in pins.items() if pin.wanted_by & kept} - kept:
        kept |= more
    return {name: pin for name, pin in sorted(pins.items()) if name in kept}


def component(pin: Pin) -> dict[str, Any]:
    found = licence(pin)
    return {
        "type": "library",
        "bom-ref": pin.reference,
        "name": pin.name,
        "version": pin.version,
        "purl": pin.reference,
        "hashes": [{"alg": "SHA-256", "content": content} for content in pin.hashes],
        **({"licenses": [{"expression": found}]} if found else {}),
    }


def dependencies(us: str, pins: Mapping[str, Pin]) -> Iterator[dict[str, Any]]:
    references = {US: us, **{name: pin.reference for name, pin in pins.items()}}
    for name, reference in references.items():
        yield {
            "ref": reference,
            "dependsOn": sorted(pin.reference for pin in pins.values() if name in pin.wanted_by),
        }


def licence(pin: Pin) -> str | None:
    """The licence of the installed package, if it is the locked version and has an SPDX expression."""
    try:
        found = metadata.metadata(pin.name)
    except metadata.PackageNotFoundError:
        return None
    is_known = "License-Expression" in found and found["Version"] == pin.version
    return found["License-Expression"] if is_known else None


def version() -> str:
    return metadata.version(US)


if __name__ == "__main__":
    sys.exit(main())
