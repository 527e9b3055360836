-- name: bounds
SELECT archived_through + 1,
       greatest(archived_through, coalesce((SELECT global_seq FROM tape_journal ORDER BY global_seq DESC LIMIT 1), 0))
FROM tape_meta;

-- name: extent
-- The bounds and the terms in one snapshot.
SELECT m.archived_through + 1,
       greatest(m.archived_through, coalesce((SELECT global_seq FROM tape_journal ORDER BY global_seq DESC LIMIT 1), 0)),
       t.epoch, t.first_seq
FROM tape_meta AS m CROSS JOIN tape_terms AS t ORDER BY t.epoch;

-- name: count_between
SELECT count(*) FROM tape_journal WHERE global_seq > :after AND global_seq <= :through;

-- name: range
-- What is asked of it is put behind, then the order. Whoever reads widens what is narrow: casts cost a tenth of a COPY.
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after AND global_seq <= :through;

-- name: of_runs
AND run_id = ANY (:run_ids);

-- name: of_kinds
AND kind = ANY (:kinds);

-- name: of_subjects
AND subject = ANY (:subjects);

-- name: of_span
-- The sums keep the planner from an index of the whole journal for a range of it.
AND subject || '' >= :low AND subject || '' < :high;

-- name: in_order
ORDER BY global_seq;
