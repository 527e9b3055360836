-- name: head
SELECT last_seq, closed_seq, floor, opened_seq, content_type FROM tape_heads WHERE run_id = :run_id;

-- name: heads
-- As a join it would read the whole table: the planner takes every list for one of a hundred.
SELECT run_id, last_seq, closed_seq, floor, opened_seq, content_type
FROM tape_heads
WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json)));

-- name: put_run
INSERT INTO tape_runs (run_id, label, started_at, opened_at) VALUES (:run_id, :label, :started_at, :now_ms)
ON CONFLICT (run_id) DO UPDATE SET
  label = excluded.label, started_at = excluded.started_at, opened_at = excluded.opened_at,
  closed_seq = NULL, closed_at = NULL, reaped_at = NULL;

-- name: open_head
-- A life begins after the last seq of the one before.
INSERT INTO tape_heads AS h (run_id) VALUES (:run_id)
ON CONFLICT (run_id) DO UPDATE SET closed_seq = NULL, opened_seq = h.last_seq;

-- name: close_head
UPDATE tape_heads SET closed_seq = last_seq WHERE run_id = :run_id AND closed_seq IS NULL;

-- name: close_run
UPDATE tape_runs SET
  closed_at = :now_ms, closed_seq = (SELECT last_seq FROM tape_heads WHERE run_id = :run_id), reaped_at = NULL
WHERE run_id = :run_id;

-- name: reap_run
UPDATE tape_runs SET reaped_at = :now_ms WHERE run_id = :run_id AND reaped_at IS NULL;

-- name: live
SELECT r.run_id, r.label, r.started_at, h.last_seq
FROM tape_heads AS h JOIN tape_runs AS r ON r.run_id = h.run_id
WHERE h.closed_seq IS NULL AND left(r.run_id, 5) <> 'tape.'
ORDER BY r.opened_at, r.run_id;

-- name: children
SELECT count(*) FROM tape_runs WHERE parent_run_id = :run_id AND deleted_at IS NULL AND reaped_at IS NULL;
