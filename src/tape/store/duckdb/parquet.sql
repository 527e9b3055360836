-- name: totals
SELECT count(*), count(DISTINCT global_seq), coalesce(max(global_seq), 0) FROM journal;

-- name: as_of
SELECT coalesce(max(global_seq), 0) AS global_seq, count(*) AS entries, count(DISTINCT run_id) AS runs,
       count(DISTINCT type) AS types, min(ts_ms) AS first_ts_ms, max(ts_ms) AS last_ts_ms
FROM journal;

-- name: syntax_tree
SELECT json_serialize_sql($query::VARCHAR);

-- name: allow_files
-- An allowed folder could be written to, so only the files of the query's own snapshot are allowed.
SET allowed_paths = $files;

-- name: refuse_the_rest
-- A query sees the files of the table and nothing else of this machine.
SET enable_external_access = false;

-- name: keep_it_so
SET lock_configuration = true;
