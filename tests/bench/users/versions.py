"""A peer with the version of it that is measured."""

from importlib.metadata import PackageNotFoundError, version


def named(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:  # as in the tests, which run our own sides only
        return package
