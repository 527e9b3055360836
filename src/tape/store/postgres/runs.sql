-- name: head
SELECT last_seq, closed_seq, floor, opened_seq, content_type, lineage_json FROM tape_heads WHERE run_id = :run_id;

-- name: heads
-- A join would read the whole table, because the planner assumes a hundred elements for every list.
SELECT run_id, last_seq, closed_seq, floor, opened_seq, content_type, lineage_json
FROM tape_heads
WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json)));

-- name: lock_run
-- A row of tape_runs is locked before the journal, never after: a transaction that has changed one may wait for the
-- append lock.
SELECT run_id FROM tape_runs WHERE run_id = :run_id FOR UPDATE;

-- name: put_run
INSERT INTO tape_runs (run_id, label, started_at, app, user_id, session, opened_at, producer, renewed_at)
VALUES (:run_id, :label, :started_at, :app, :user, :session, tape_now_ms(), :producer::text,
        CASE WHEN :producer::text IS NOT NULL THEN tape_now_ms() END)
ON CONFLICT (run_id) DO UPDATE SET
  label = excluded.label, started_at = excluded.started_at, app = excluded.app, user_id = excluded.user_id,
  session = excluded.session, opened_at = excluded.opened_at, closed_seq = NULL, closed_at = NULL, reaped_at = NULL,
  producer = excluded.producer, renewed_at = excluded.renewed_at;

-- name: open_head
-- A run that is opened again continues after its last seq.
INSERT INTO tape_heads AS h (run_id, opened_at)
SELECT r.run_id, r.opened_at FROM tape_runs AS r WHERE r.run_id = :run_id
ON CONFLICT (run_id) DO UPDATE SET closed_seq = NULL, opened_seq = h.last_seq, opened_at = excluded.opened_at;

-- name: close_heads
UPDATE tape_heads SET closed_seq = last_seq
WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json))) AND closed_seq IS NULL;

-- name: close_runs
-- Closing a run ends its lease, so an append that opens it again need not check.
UPDATE tape_runs SET
  closed_at = tape_now_ms(), closed_seq = (SELECT h.last_seq FROM tape_heads AS h WHERE h.run_id = tape_runs.run_id),
  reaped_at = NULL, producer = NULL, renewed_at = NULL
WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json)));

-- name: reap_run
UPDATE tape_runs SET reaped_at = tape_now_ms() WHERE run_id = :run_id AND reaped_at IS NULL;

-- name: children
-- A run that an append has opened again counts, whatever its row says.
SELECT count(*)
FROM tape_runs AS r JOIN tape_heads AS h ON h.run_id = r.run_id
WHERE r.parent_run_id = :run_id AND r.deleted_at IS NULL AND (r.reaped_at IS NULL OR h.closed_seq IS NULL);

-- name: lock_runs
-- All statements that lock many rows lock them in this order.
SELECT run_id FROM tape_runs
WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json)))
ORDER BY run_id FOR UPDATE;

-- name: renew
-- Closing a run locks its row first, so while the rows are locked an open head stays open. No head is locked, so appends
-- neither wait nor block.
UPDATE tape_runs SET producer = :producer, renewed_at = tape_now_ms()
WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json)))
  AND (producer = :producer OR (:adopts::boolean AND producer IS NULL AND EXISTS (
    SELECT FROM tape_heads AS h WHERE h.run_id = tape_runs.run_id AND h.closed_seq IS NULL)))
RETURNING run_id;

-- name: silent
SELECT run_id FROM tape_runs
WHERE producer IS NOT NULL AND renewed_at <= tape_now_ms() - :silence_ms::bigint
ORDER BY run_id;

-- name: lock_silent
-- A locked row is being renewed or closed, or is free the next time.
SELECT run_id FROM tape_runs
WHERE producer IS NOT NULL AND renewed_at <= tape_now_ms() - :silence_ms::bigint
ORDER BY run_id FOR UPDATE SKIP LOCKED;

-- name: found
SELECT r.run_id, r.label, r.started_at, r.app, r.user_id, r.session, r.opened_at, r.closed_at, r.reaped_at,
       tape_now_ms() - r.renewed_at, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM tape_runs AS r JOIN tape_heads AS h ON h.run_id = r.run_id
WHERE r.run_id = :run_id;
