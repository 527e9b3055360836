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
-- The plus keeps the planner on the primary key: the window is short, the range of subjects may be the whole journal.
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
WHERE global_seq IN (
  SELECT j.global_seq FROM json_each(:segments) AS s
  CROSS JOIN tape_journal AS j ON j.run_id = json_extract(s.value, '$[0]')
    AND j.seq BETWEEN json_extract(s.value, '$[1]') AND json_extract(s.value, '$[2]')
)
ORDER BY global_seq LIMIT :limit;

-- name: floors
SELECT h.run_id, h.floor FROM json_each(:run_ids) AS asked JOIN tape_heads AS h ON h.run_id = asked.value;

-- name: terms
-- A file has no promotions: its epoch is its only term.
SELECT epoch, 1 FROM tape_meta;
