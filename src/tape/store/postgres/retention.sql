-- name: bounds
SELECT archived_through + 1,
       greatest(archived_through, coalesce((SELECT global_seq FROM tape_journal ORDER BY global_seq DESC LIMIT 1), 0))
FROM tape_meta;

-- name: raise_floor
UPDATE tape_meta SET
  archived_through = greatest(archived_through, :through),
  last_ts_ms = greatest(last_ts_ms, (SELECT ts_ms FROM tape_journal WHERE global_seq = :through));

-- name: raise_run_floors
-- The floor of a run is above its last entry at or below the position.
UPDATE tape_heads AS h SET floor = greatest(h.floor, gone.seq + 1)
FROM (SELECT run_id, max(seq) AS seq FROM tape_journal WHERE global_seq <= :through GROUP BY run_id) AS gone
WHERE h.run_id = gone.run_id;

-- name: delete_through
DELETE FROM tape_journal WHERE global_seq <= :through;

-- name: run_head
SELECT last_seq, closed_seq, floor, opened_seq, content_type, lineage_json FROM tape_heads WHERE run_id = :run_id;

-- name: last_gone
SELECT max(global_seq) FROM tape_journal WHERE run_id = :run_id AND seq < :floor;

-- name: raise_run_floor
UPDATE tape_heads SET floor = greatest(floor, :floor) WHERE run_id = :run_id;

-- name: delete_run_below
DELETE FROM tape_journal WHERE run_id = :run_id AND seq < :floor;

-- name: delete_keys_before
DELETE FROM tape_keys WHERE ts_ms < :before_ms RETURNING key;
