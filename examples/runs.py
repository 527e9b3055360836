import tape

with tape.connect("memory://") as client:
    begun = client.runs.begin("treasury", "ann", "monday", "sweep-1", owner="worker-1", scopes=["payments"])
    run_id, fence = begun.run.run_id, begun.run.claim.attempt

    client.decisions.record(run_id, 0, model="m1", response={"amount": 7}, fence=fence)
    undo = tape.Compensation(kind="recall_wire", payload_json='{"amount":7}')
    effect = client.effects.begin(run_id, "wire", {"amount": 7}, decision_index=0, compensation=undo, fence=fence)
    print(effect.status, effect.idempotency_key.removeprefix(run_id))  # recorded before the action
    # … here the wire is sent, with the idempotency key …
    client.effects.complete(run_id, effect.idempotency_key, response={"id": "bank-1"}, fence=fence)

    again = client.effects.begin(run_id, "wire", {"amount": 7}, decision_index=0)  # a worker that was restarted
    print(again.status, again.response_json)

    passage = client.gates.wait(run_id, "approval")
    print(passage.is_delivered, client.runs.get(run_id).status)
    client.gates.send(run_id, "approval", "no")
    print(client.gates.wait(run_id, "approval").resolution_json, client.runs.get(run_id).status)

    client.runs.end(run_id, tape.RunStatus.FAILED)
    for owed in client.obligations.due():
        held = client.obligations.claim(owed.run_id, owed.number, "drainer-1").obligation
        print("undo:", held.kind, held.payload_json)
        client.obligations.resolve(held.run_id, held.number, attempt=held.claim.attempt)
