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

-- name: set_range
-- COPY takes no parameters, so the other statements read their values from this setting of the session. Each of them
-- reads it in a subquery, which runs once and not for every row.
SELECT set_config('tape.range', $1, false);

-- name: count_between
SELECT count(*) FROM tape_journal
WHERE global_seq > (SELECT (current_setting('tape.range')::json ->> 'after')::bigint)
  AND global_seq <= (SELECT (current_setting('tape.range')::json ->> 'through')::bigint);

-- name: range
-- The conditions of a selection follow, then the order. Arrow widens narrow columns: a cast here takes a tenth of a COPY.
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > (SELECT (current_setting('tape.range')::json ->> 'after')::bigint)
  AND global_seq <= (SELECT (current_setting('tape.range')::json ->> 'through')::bigint);

-- name: of_runs
AND run_id = ANY (ARRAY(SELECT json_array_elements_text(current_setting('tape.range')::json -> 'run_ids')));

-- name: of_kinds
AND kind = ANY (ARRAY(SELECT json_array_elements_text(current_setting('tape.range')::json -> 'kinds')));

-- name: of_subjects
AND subject = ANY (ARRAY(SELECT json_array_elements_text(current_setting('tape.range')::json -> 'subjects')));

-- name: of_span
-- The concatenations keep the planner from the index of all subjects.
AND subject || '' >= (SELECT current_setting('tape.range')::json ->> 'low')
AND subject || '' < (SELECT current_setting('tape.range')::json ->> 'high');

-- name: in_order
ORDER BY global_seq;
