"""Makes the seeded mistakes, each alone, and sees who notices: `python -m tests.mutants [--jobs N] [NAME…]`."""

import argparse
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, TypeVar

import anyio

from tests.mutants.mistakes import Mistake, read_mistakes
from tests.mutants.results import Caught, digest_of_sources, read_results, summary, write_results
from tests.mutants.trial import MOST_S, Repository, copied

MOST_JOBS: Final = 4  # each has its own database servers

T = TypeVar("T")


class Progress:
    """What was found so far; each result is stored at once, so that an interrupted run goes on where it was."""

    def __init__(self) -> None:
        self.mistakes = read_mistakes()
        self.results = read_results()
        self.sources = digest_of_sources()
        self.survivors: list[str] = []
        self.unusable: list[str] = []

    def left(self, names: Sequence[str]) -> list[Mistake]:
        """The mistakes with these names, or those not yet caught with these sources; what took longest comes first."""
        if unknown := set(names) - {mistake.name for mistake in self.mistakes}:
            raise SystemExit(f"no mistake is called {', '.join(sorted(unknown))}")
        left = [each for each in self.mistakes if each.name in names or not (names or self._is_current(each))]
        return sorted(left, key=lambda mistake: -self._seconds(mistake))

    def record(self, mistake: Mistake, caught: Caught | None) -> None:
        if caught is None:
            self.survivors.append(mistake.name)
            self.results.pop(mistake.name, None)
        else:
            self.results[mistake.name] = caught
        write_results(self.results, self.mistakes)

    def _is_current(self, mistake: Mistake) -> bool:
        caught = self.results.get(mistake.name)
        return caught is not None and caught["sources"] == self.sources

    def _seconds(self, mistake: Mistake) -> float:
        caught = self.results.get(mistake.name)
        return MOST_S if caught is None else caught["seconds"]


async def run(names: Sequence[str], jobs: int) -> str:
    """Tries what is left; returns why the run failed, or ""."""
    progress = Progress()
    left = progress.left(names)
    print(f"{len(left)} of {len(progress.mistakes)} mistakes are to be tried, {jobs} at a time", flush=True)
    with ExitStack() as copies:
        repositories = [copies.enter_context(copied()) for _ in range(min(jobs, len(left)))]
        await _share_out(repositories, _parts(left, len(repositories)), partial(_check_unchanged, progress))
        if progress.unusable:
            return f"the tests do not pass as they are: {', '.join(progress.unusable)}"
        await _share_out(repositories, left, partial(_try, progress))
    write_results(progress.results, progress.mistakes)
    print("\n".join(summary(progress.results, progress.mistakes)), flush=True)
    return f"not noticed: {', '.join(progress.survivors)}" if progress.survivors else ""


async def _share_out(
    repositories: Sequence[Repository], work: Iterable[T], do: Callable[[Repository, T], Awaitable[None]]
) -> None:
    """Each repository takes the next piece of work as soon as it has done one."""
    pieces = iter(work)

    async def take(repository: Repository) -> None:
        for piece in pieces:
            await do(repository, piece)

    async with anyio.create_task_group() as tasks:
        for repository in repositories:
            tasks.start_soon(take, repository)


def _parts(mistakes: Sequence[Mistake], count: int) -> list[list[str]]:
    """All tests of these mistakes in so many parts; a file is in one part, because its tests share servers."""
    tests = sorted({test for mistake in mistakes for test in mistake.caught_by})
    parts: list[list[str]] = [[] for _ in range(count)]
    for file in sorted({test.partition("::")[0] for test in tests}):
        min(parts, key=len).extend(test for test in tests if test.partition("::")[0] == file)
    return [part for part in parts if part]


async def _check_unchanged(progress: Progress, repository: Repository, tests: Sequence[str]) -> None:
    """Without a mistake every test must pass; otherwise its failure says nothing."""
    trial = await repository.test(tests, most_s=MOST_S * len(tests))
    if trial.has_passed:
        print(f"{len(tests)} tests pass without a mistake, in {trial.seconds:.0f} s", flush=True)
    else:
        print(trial.output[-20_000:], flush=True)
        progress.unusable.append(trial.failed or trial.end)


async def _try(progress: Progress, repository: Repository, mistake: Mistake) -> None:
    with repository.mistaken(mistake):
        trial = await repository.test(mistake.caught_by, "-x")
    failed = trial.failed
    print(f"{mistake.name:<40} {failed or 'SURVIVED: ' + trial.end} {trial.seconds:.0f} s", flush=True)
    if failed is None:
        print(trial.output[-4_000:], flush=True)
        progress.record(mistake, None)
    else:
        progress.record(mistake, Caught(caught_by=failed, seconds=round(trial.seconds, 1), sources=progress.sources))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--jobs", type=int, default=min(os.cpu_count() or 1, MOST_JOBS), help="tried at the same time")
    asked = parser.parse_args()
    sys.exit(anyio.run(run, asked.names, max(asked.jobs, 1)) or 0)


if __name__ == "__main__":
    main()
