-- name: bounds
SELECT archived_through + 1,
       greatest(archived_through, coalesce((SELECT global_seq FROM tape_journal ORDER BY global_seq DESC LIMIT 1), 0)),
       changes,
       epoch
FROM tape_meta;

-- name: after
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after
ORDER BY global_seq LIMIT :limit;

-- name: after_in_range
-- The concatenations keep the planner on the primary key: the window is short, the range of subjects may be everything.
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after AND global_seq <= :through AND subject || '' >= :low AND subject || '' < :high
ORDER BY global_seq LIMIT :limit;

-- name: after_of_subject
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE subject = :subject AND global_seq > :after
ORDER BY global_seq LIMIT :limit;

-- name: count_between
-- Positions are dense, so a reader by subject counts the entries between its matches.
SELECT count(*) FROM tape_journal WHERE global_seq > :after AND global_seq <= :through;

-- name: places_between
SELECT global_seq FROM tape_journal WHERE global_seq > :after AND global_seq <= :through ORDER BY global_seq LIMIT :limit;

-- name: run_after
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE run_id = :run_id AND seq > :after
ORDER BY seq LIMIT :limit;

-- name: run_head
SELECT last_seq, closed_seq, floor, opened_seq, content_type, lineage_json FROM tape_heads WHERE run_id = :run_id;

-- name: segments
-- Positions rise along a run and all it inherits, so the page is in the order of positions. It has a few segments.
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq = ANY (ARRAY(
  SELECT j.global_seq FROM json_array_elements(:segments::json) AS s
  CROSS JOIN LATERAL (
    SELECT global_seq FROM tape_journal
    WHERE run_id = s.value ->> 0 AND seq BETWEEN (s.value ->> 1)::bigint AND (s.value ->> 2)::bigint
    ORDER BY seq LIMIT :limit
  ) AS j
))
ORDER BY global_seq LIMIT :limit;

-- name: floors
SELECT run_id, floor FROM tape_heads WHERE run_id = ANY (ARRAY(SELECT json_array_elements_text(:run_ids::json)));

-- name: terms
SELECT epoch, first_seq FROM tape_terms ORDER BY epoch;
