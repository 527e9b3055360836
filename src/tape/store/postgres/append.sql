-- name: append
SELECT base, ts, epoch, changes, lasts, depths, refused::text FROM tape_append(
  $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25,
  $26, $27, $28, $29, $30, $31, $32, $33, $34, $35, $36, $37, $38, $39, $40, $41, $42, $43, $44, $45);

-- name: append_one
SELECT tape_append_one($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17);

-- name: begin
SELECT greatest(m.archived_through, coalesce((SELECT global_seq FROM tape_journal ORDER BY global_seq DESC LIMIT 1), 0)),
       s.pid, s.backend_start
FROM tape_meta AS m, pg_stat_activity AS s
WHERE s.pid = pg_backend_pid();

-- name: between
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq BETWEEN $1 AND $2
ORDER BY global_seq;

-- name: end_session
SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2;

-- name: is_alive
SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND backend_start = $2;

-- name: lock
LOCK TABLE tape_append_lock IN SHARE UPDATE EXCLUSIVE MODE;

-- name: written
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > $1 AND event_id = ANY ($2)
ORDER BY global_seq;
