-- name: bounds
SELECT archived_through + 1, max(archived_through, coalesce((SELECT max(global_seq) FROM tape_journal), 0)), changes,
       epoch
FROM tape_meta;

-- name: after
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after
ORDER BY global_seq LIMIT :limit;

-- name: after_in_range
-- The plus keeps the planner on the primary key: the window is short, the subject's range may be the whole journal.
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after AND global_seq <= :through AND +subject >= :low AND +subject < :high
ORDER BY global_seq LIMIT :limit;

-- name: after_of_subject
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE subject = :subject AND global_seq > :after
ORDER BY global_seq LIMIT :limit;

-- name: run_after
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE run_id = :run_id AND seq > :after
ORDER BY seq LIMIT :limit;

-- name: run_head
SELECT last_seq, closed_seq, floor, opened_seq, content_type FROM tape_heads WHERE run_id = :run_id;
