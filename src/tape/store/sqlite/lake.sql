-- name: bounds
SELECT archived_through + 1, max(archived_through, coalesce((SELECT max(global_seq) FROM tape_journal), 0))
FROM tape_meta;

-- name: extent
-- The bounds and the terms in one snapshot. A file has no promotions: its epoch is its only term.
SELECT archived_through + 1, max(archived_through, coalesce((SELECT max(global_seq) FROM tape_journal), 0)), epoch, 1
FROM tape_meta;

-- name: count_between
SELECT count(*) FROM tape_journal WHERE global_seq > :after AND global_seq <= :through;

-- name: range
-- The conditions of a selection follow, then the order. A range is read by primary key: several readers share the journal
-- by ranges, and each would otherwise read the whole index.
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after AND global_seq <= :through;

-- name: of_runs
AND +run_id IN (SELECT value FROM json_each(:run_ids));

-- name: of_kinds
AND kind IN (SELECT value FROM json_each(:kinds));

-- name: of_subjects
-- This index ends with the position, so it may be used.
AND subject IN (SELECT value FROM json_each(:subjects));

-- name: of_span
AND +subject >= :low AND +subject < :high;

-- name: in_order
ORDER BY global_seq;
