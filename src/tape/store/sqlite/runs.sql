-- name: head
SELECT last_seq, closed_seq, floor, opened_seq, content_type, lineage_json FROM tape_heads WHERE run_id = :run_id;

-- name: heads
SELECT h.run_id, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM json_each(:run_ids) AS asked JOIN tape_heads AS h ON h.run_id = asked.value;

-- name: lock_run
-- A transaction has the write lock of the file from its beginning, and so of every row.
SELECT run_id FROM tape_runs WHERE run_id = :run_id;

-- name: put_run
INSERT INTO tape_runs (run_id, label, started_at, app, user_id, session, opened_at, producer, renewed_at)
VALUES (:run_id, :label, :started_at, :app, :user, :session, :now_ms, :producer,
        CASE WHEN :producer IS NOT NULL THEN :now_ms END)
ON CONFLICT (run_id) DO UPDATE SET
  label = excluded.label, started_at = excluded.started_at, app = excluded.app, user_id = excluded.user_id,
  session = excluded.session, opened_at = excluded.opened_at, closed_seq = NULL, closed_at = NULL, reaped_at = NULL,
  producer = excluded.producer, renewed_at = excluded.renewed_at;

-- name: open_head
-- A run that is opened again continues after its last seq.
INSERT INTO tape_heads (run_id, opened_at) SELECT r.run_id, r.opened_at FROM tape_runs AS r WHERE r.run_id = :run_id
ON CONFLICT (run_id) DO UPDATE SET closed_seq = NULL, opened_seq = last_seq, opened_at = excluded.opened_at;

-- name: close_heads
UPDATE tape_heads SET closed_seq = last_seq
WHERE run_id IN (SELECT value FROM json_each(:run_ids)) AND closed_seq IS NULL;

-- name: close_runs
-- Closing a run ends its lease, so an append that opens it again need not check.
UPDATE tape_runs SET
  closed_at = :now_ms, closed_seq = (SELECT h.last_seq FROM tape_heads AS h WHERE h.run_id = tape_runs.run_id),
  reaped_at = NULL, producer = NULL, renewed_at = NULL
WHERE run_id IN (SELECT value FROM json_each(:run_ids));

-- name: reap_run
UPDATE tape_runs SET reaped_at = :now_ms WHERE run_id = :run_id AND reaped_at IS NULL;

-- name: children
-- A run that an append has opened again counts, whatever its row says.
SELECT count(*)
FROM tape_runs AS r JOIN tape_heads AS h ON h.run_id = r.run_id
WHERE r.parent_run_id = :run_id AND r.deleted_at IS NULL AND (r.reaped_at IS NULL OR h.closed_seq IS NULL);

-- name: lock_runs
SELECT run_id FROM tape_runs WHERE run_id IN (SELECT value FROM json_each(:run_ids)) ORDER BY run_id;

-- name: renew
UPDATE tape_runs SET producer = :producer, renewed_at = :now_ms
WHERE run_id IN (SELECT value FROM json_each(:run_ids))
  AND (producer = :producer OR (:adopts AND producer IS NULL AND EXISTS (
    SELECT 1 FROM tape_heads AS h WHERE h.run_id = tape_runs.run_id AND h.closed_seq IS NULL)))
RETURNING run_id;

-- name: silent
SELECT run_id FROM tape_runs WHERE producer IS NOT NULL AND renewed_at <= :now_ms - :silence_ms ORDER BY run_id;

-- name: lock_silent
SELECT run_id FROM tape_runs WHERE producer IS NOT NULL AND renewed_at <= :now_ms - :silence_ms ORDER BY run_id;

-- name: found
SELECT r.run_id, r.label, r.started_at, r.app, r.user_id, r.session, r.opened_at, r.closed_at, r.reaped_at,
       :now_ms - r.renewed_at, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM tape_runs AS r JOIN tape_heads AS h ON h.run_id = r.run_id
WHERE r.run_id = :run_id;
