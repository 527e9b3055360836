-- name: meta
-- When every entry is archived, the head and the time of the last one are kept in tape_meta.
SELECT m.epoch, max(m.archived_through, coalesce(j.global_seq, 0)), max(m.last_ts_ms, coalesce(j.ts_ms, 0))
FROM tape_meta AS m
LEFT JOIN (SELECT global_seq, ts_ms FROM tape_journal ORDER BY global_seq DESC LIMIT 1) AS j;

-- name: last_gone
SELECT max(global_seq) FROM tape_journal WHERE run_id = ? AND seq < ?;

-- name: delete_run_below
DELETE FROM tape_journal WHERE run_id = ? AND seq < ?;

-- name: raise_floor
UPDATE tape_meta SET archived_through = max(archived_through, ?), last_ts_ms = max(last_ts_ms, ?);

-- name: head
SELECT last_seq, closed_seq, floor, opened_seq, content_type, lineage_json FROM tape_heads WHERE run_id = ?;

-- name: key
SELECT digest, first_seq, seqs_json, ts_ms FROM tape_keys WHERE key = ?;

-- name: cell
SELECT version FROM tape_cells WHERE ledger = ? AND key = ?;

-- name: depth
SELECT depth FROM tape_journal WHERE global_seq = ?;

-- name: between
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq BETWEEN ? AND ?
ORDER BY global_seq;

-- name: insert_entry
INSERT INTO tape_journal (
  global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
  trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?);

-- name: put_head
-- opened_at is that of the row of the run, which a later opening by an append does not change.
INSERT INTO tape_heads (run_id, last_seq, closed_seq, floor, opened_seq, content_type, fork_seq, lineage_json, opened_at)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (run_id) DO UPDATE SET
  last_seq = excluded.last_seq, closed_seq = excluded.closed_seq, floor = excluded.floor,
  opened_seq = excluded.opened_seq, content_type = excluded.content_type;

-- name: move_head
-- For an open run: without closed_seq the index of open runs does not change, and a commit writes a page less.
UPDATE tape_heads SET last_seq = ?, floor = ?, content_type = ? WHERE run_id = ?;

-- name: insert_run
INSERT INTO tape_runs (run_id, opened_at, parent_run_id, fork_seq) VALUES (?, ?, ?, ?) ON CONFLICT (run_id) DO NOTHING;

-- name: insert_key
INSERT INTO tape_keys (key, digest, first_seq, seqs_json, ts_ms) VALUES (?, ?, ?, ?, ?);

-- name: put_cell
INSERT INTO tape_cells (ledger, key, version, status, due_at_ms, state_json, app, kind, place)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (ledger, key) DO UPDATE SET
  version = excluded.version, status = excluded.status, due_at_ms = excluded.due_at_ms,
  state_json = excluded.state_json, app = excluded.app, kind = excluded.kind, place = excluded.place;

-- name: count_change
-- Runs were opened, closed or trimmed, so readers read their heads again.
UPDATE tape_meta SET changes = changes + 1;

-- name: data_version
PRAGMA data_version;
