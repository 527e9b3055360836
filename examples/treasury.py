import sqlite3

import tape

BOOKS = "sqlite:///treasury.db"
BANK = "bank.db"


def ask_bank(kind: str, order: object) -> str:
    """A bank with its own database: it executes an idempotency key once."""
    with sqlite3.connect(BANK) as books:
        books.execute("CREATE TABLE IF NOT EXISTS done (key TEXT PRIMARY KEY, kind TEXT, wanted TEXT)")
        books.execute("INSERT OR IGNORE INTO done VALUES (?, ?, ?)", (tape.idempotency_key(), kind, str(order)))
    return f"{kind} {order}"


def find_order(amount: int, rate: float) -> str | None:
    with sqlite3.connect(BANK) as books:
        found = books.execute("SELECT wanted FROM done WHERE key = ?", (tape.idempotency_key(),)).fetchone()
    return found and f"order {found[0]}"


def recall(wire: str, amount: int) -> str:
    return ask_bank("recall", amount)


@tape.effect(compensate=recall)
def sweep(amount: int) -> str:
    return ask_bank("wire", amount)


@tape.effect(status_check=find_order)
def hedge(amount: int, rate: float) -> str:
    return ask_bank("order", f"{amount} at {rate}")


@tape.effect(retry=tape.Retries(attempts=3))
def post(lines: list[str]) -> str:
    return ask_bank("batch", ", ".join(lines))


def treasury(run: object) -> str:
    rate = tape.sample("rate", lambda: 1.08)
    with tape.reserve(usd=0.05) as spending:
        amount = tape.decide(lambda: 700, model="planner", request="how much is idle?")
        spending.spent(usd=0.02)
    if tape.gate("approval", {"amount": amount}) != "yes":
        return "left alone"
    return post([sweep(amount), hedge(amount, rate)])


if __name__ == "__main__":
    with tape.connect(BOOKS) as client:
        run_id = client.runs.begin("treasury", invocation="monday").run.run_id
    tape.run_agent("treasury", treasury, BOOKS, once=True, budget=tape.Budget(usd=1))

    with tape.connect(BOOKS) as client:
        print("the run is", client.runs.get(run_id).status)
        client.gates.send(run_id, "approval", "yes", key="approved-by-ann")
    tape.run_agent("treasury", treasury, BOOKS, once=True)

    with tape.connect(BOOKS) as client:
        print("the run is", client.runs.get(run_id).status, client.runs.get(run_id).detail_json)
        for effect in client.effects.list_all(run_id):
            print(effect.status, effect.tool, effect.response_json)
