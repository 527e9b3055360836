"""A directory with many runs, written at once: one in ten is open, one in five is of an app, half are forks."""

NUMBERS = {
    "sqlite": "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count})",
    "postgres": "WITH numbers (n) AS (SELECT n FROM generate_series(1, {count}) n)",
}
HEADS = """
INSERT INTO tape_heads (run_id, last_seq, closed_seq, opened_at)
{numbers} SELECT 'run-' || n, 1, CASE WHEN n % 10 <> 0 THEN 1 END, n FROM numbers
"""
RUNS = """
INSERT INTO tape_runs (run_id, label, app, opened_at, closed_at, parent_run_id)
{numbers} SELECT 'run-' || n, 'label-' || (n % 7), 'app-' || (n % 5), n, CASE WHEN n % 10 <> 0 THEN n + 5 END,
  CASE WHEN n % 2 = 0 THEN 'run-1' END FROM numbers
"""


def script(dialect: str, count: int) -> str:
    """The statements that write so many runs into an empty database."""
    numbers = NUMBERS[dialect].format(count=count)
    return f"{HEADS.format(numbers=numbers)}; {RUNS.format(numbers=numbers)}; ANALYZE;"
