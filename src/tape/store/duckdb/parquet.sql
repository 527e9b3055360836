-- name: totals
SELECT count(*), count(DISTINCT global_seq), coalesce(max(global_seq), 0) FROM journal;

-- name: as_of
SELECT coalesce(max(global_seq), 0) AS global_seq, count(*) AS entries, count(DISTINCT run_id) AS runs,
       count(DISTINCT type) AS types, min(ts_ms) AS first_ts_ms, max(ts_ms) AS last_ts_ms
FROM journal;

-- name: syntax_tree
SELECT json_serialize_sql($query::VARCHAR);

-- name: allow_files
-- A folder that is allowed may be written into, so only the files of the query's own snapshot are.
SET allowed_paths = $files;

-- name: refuse_the_rest
-- Whoever asks sees the table's own files and nothing else of this machine.
SET enable_external_access = false;

-- name: keep_it_so
SET lock_configuration = true;
