"""How much is measured: 1 is what is published, a small factor tries whether everything works."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Size:
    """A factor for the seconds and the numbers of a measurement."""

    factor: float = 1.0

    def __post_init__(self) -> None:
        if not 0 < self.factor <= 100:
            raise ValueError(f"a size is more than 0 and at most 100, not {self.factor}")

    @property
    def is_whole(self) -> bool:
        return self.factor >= 1

    def seconds(self, whole: float) -> float:
        return whole * self.factor

    def count(self, whole: int, least: int = 1) -> int:
        return max(least, round(whole * self.factor))
