-- name: bounds
SELECT archived_through + 1, max(archived_through, coalesce((SELECT max(global_seq) FROM tape_journal), 0))
FROM tape_meta;

-- name: epoch
SELECT epoch FROM tape_meta;

-- name: terms
SELECT epoch, 1 FROM tape_meta;

-- name: after
SELECT global_seq, seq, ts_ms, depth, epoch, crc, run_id, kind, type, subject, schema_version, event_id, cause,
       trace_id, span_id, parent_span_id, attributes_json, payload_json, payload_bytes
FROM tape_journal
WHERE global_seq > :after AND global_seq <= :through
ORDER BY global_seq LIMIT :limit;

-- name: place
-- Short columns come first in a row and can often be read when the payload cannot.
SELECT run_id, seq FROM tape_journal NOT INDEXED WHERE global_seq = :global_seq;

-- name: runs_after
-- The own entries of a fork begin after those it inherits.
-- The index of (run_id, seq) has all of this but the heads, so no payload is read.
SELECT j.run_id, j.seq, j.global_seq, max(h.floor, coalesce(h.fork_seq, 0) + 1), h.last_seq
FROM tape_journal AS j LEFT JOIN tape_heads AS h ON h.run_id = j.run_id
WHERE (j.run_id, j.seq) > (:run_id, :seq)
ORDER BY j.run_id, j.seq LIMIT :limit;

-- name: run_head
SELECT max(floor, coalesce(fork_seq, 0) + 1), last_seq FROM tape_heads WHERE run_id = :run_id;

-- name: bare_heads
SELECT h.run_id, max(h.floor, coalesce(h.fork_seq, 0) + 1), h.last_seq
FROM tape_heads AS h
WHERE h.last_seq >= max(h.floor, coalesce(h.fork_seq, 0) + 1)
  AND NOT EXISTS (SELECT 1 FROM tape_journal AS j WHERE j.run_id = h.run_id)
ORDER BY h.run_id LIMIT :limit;

-- name: check_file
-- integrity_check, because quick_check does not compare indexes with their tables.
PRAGMA integrity_check(100);

-- name: nth_place
-- The check reports the ordinal of a row, not its key.
SELECT global_seq, run_id, seq FROM tape_journal NOT INDEXED ORDER BY global_seq LIMIT 1 OFFSET :rows_before;
