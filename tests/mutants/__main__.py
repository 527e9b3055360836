"""Makes the seeded mistakes one at a time and sees who notices: `python -m tests.mutants [NAME…]`."""

import sys
from collections.abc import Sequence

from tests.mutants.mistakes import Mistake, read_mistakes
from tests.mutants.results import Caught, digest_of_sources, read_results, write_results
from tests.mutants.trial import MOST_S, Repository, copied


def main(names: Sequence[str]) -> None:
    mistakes, results, sources = read_mistakes(), read_results(), digest_of_sources()
    chosen = _chosen(mistakes, names)
    left = chosen if names else [each for each in chosen if not _is_current(results.get(each.name), sources)]
    if len(left) < len(chosen):
        print(f"{len(chosen) - len(left)} of {len(chosen)} were caught with these sources already", flush=True)
    survivors = []
    with copied() as repository:
        _check_unchanged(repository, left)
        for mistake in left:
            caught = _try(repository, mistake, sources)
            if caught is None:
                survivors.append(mistake.name)
                results.pop(mistake.name, None)
            else:
                results[mistake.name] = caught
            write_results(results, mistakes)
    write_results(results, mistakes)
    if survivors:
        raise SystemExit(f"not noticed: {', '.join(survivors)}")


def _chosen(mistakes: Sequence[Mistake], names: Sequence[str]) -> list[Mistake]:
    if unknown := set(names) - {mistake.name for mistake in mistakes}:
        raise SystemExit(f"no mistake is called {', '.join(sorted(unknown))}")
    return [mistake for mistake in mistakes if not names or mistake.name in names]


def _is_current(caught: Caught | None, sources: str) -> bool:
    return caught is not None and caught["sources"] == sources


def _check_unchanged(repository: Repository, mistakes: Sequence[Mistake]) -> None:
    """Without a mistake every test must pass; otherwise its failure says nothing."""
    tests = sorted({test for mistake in mistakes for test in mistake.caught_by})
    if not tests:
        return
    trial = repository.test(tests, most_s=MOST_S * len(tests))
    if not trial.has_passed:
        raise SystemExit(f"{trial.output}\nthe tests do not pass as they are: {trial.end}")
    print(f"{len(tests)} tests pass without a mistake, in {trial.seconds:.0f} s", flush=True)


def _try(repository: Repository, mistake: Mistake, sources: str) -> Caught | None:
    with repository.mistaken(mistake):
        trial = repository.test(mistake.caught_by, "-x")
    failed = trial.failed
    print(f"{mistake.name:<40} {failed or 'SURVIVED: ' + trial.end} {trial.seconds:.0f} s", flush=True)
    if failed is None:
        print(trial.output[-4_000:], flush=True)
        return None
    return Caught(caught_by=failed, seconds=round(trial.seconds, 1), sources=sources)


if __name__ == "__main__":
    main(sys.argv[1:])
