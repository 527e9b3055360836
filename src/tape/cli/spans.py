"""Durations on the command line."""

import re
from datetime import timedelta
from typing import Any, Final

import click

_UNITS: Final = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}
_is_span = re.compile("([0-9]{1,6})([smhd])").fullmatch


class DurationType(click.ParamType[timedelta]):
    """A duration, like 30m."""

    name = "span"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = _is_span(str(value))
        if found is None:
            self.fail(f"{value!r} is not a span like 90s, 30m, 12h or 7d", param, ctx)
        return timedelta(**{_UNITS[found[2]]: int(found[1])})
