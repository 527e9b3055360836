-- name: bounds
SELECT archived_through + 1,
       greatest(archived_through, coalesce((SELECT global_seq FROM tape_journal ORDER BY global_seq DESC LIMIT 1), 0))
FROM tape_meta;

-- name: epoch
SELECT epoch FROM tape_meta;

-- name: terms
SELECT epoch, first_seq FROM tape_terms ORDER BY epoch;

-- name: after
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after AND global_seq <= :through
ORDER BY global_seq LIMIT :limit;

-- name: place
SELECT run_id, seq FROM tape_journal WHERE global_seq = :global_seq;

-- name: runs_after
-- The own entries of a fork begin after those it inherits.
SELECT j.run_id, j.seq, j.global_seq, greatest(h.floor, h.fork_seq + 1), h.last_seq
FROM tape_journal AS j LEFT JOIN tape_heads AS h ON h.run_id = j.run_id
WHERE (j.run_id, j.seq) > (:run_id, :seq)
ORDER BY j.run_id, j.seq LIMIT :limit;

-- name: run_head
SELECT greatest(floor, fork_seq + 1), last_seq FROM tape_heads WHERE run_id = :run_id;

-- name: bare_heads
SELECT h.run_id, greatest(h.floor, h.fork_seq + 1), h.last_seq
FROM tape_heads AS h
WHERE h.last_seq >= greatest(h.floor, h.fork_seq + 1)
  AND NOT EXISTS (SELECT FROM tape_journal AS j WHERE j.run_id = h.run_id)
ORDER BY h.run_id LIMIT :limit;

-- name: check_file
-- Postgres checks pages as it reads them if data checksums are on, which `tape doctor` reports.
SELECT 'ok';

-- name: nth_place
SELECT global_seq, run_id, seq FROM tape_journal ORDER BY global_seq LIMIT 1 OFFSET :rows_before;
