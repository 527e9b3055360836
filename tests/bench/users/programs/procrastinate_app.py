"""An app of procrastinate, as its quickstart writes it.

`procrastinate --app=tests.bench.users.programs.procrastinate_app.app worker --concurrency=30`
"""

import os

from procrastinate import App, PsycopgConnector

from tests.bench.users.handled import note

app = App(connector=PsycopgConnector(conninfo=os.environ["DATABASE_URL"]))


@app.task(name="handle")  # type: ignore[untyped-decorator]
async def handle(number: int) -> None:
    note(number)
