-- name: insert_claimed
-- A task is claimed as it is inserted if nothing older of its reaction is due and slots are free.
WITH matched AS MATERIALIZED (
  SELECT h.value AS h, h.value ->> 'reaction_id' AS reaction_id,
         row_number() OVER (PARTITION BY h.value ->> 'reaction_id' ORDER BY h.value ->> 'global_seq') AS nth,
         row_number() OVER (ORDER BY h.value ->> 'global_seq') AS overall
  FROM json_each(:matches) AS h
), slots AS MATERIALIZED (
  SELECT r.reaction_id, r.num_shards, CASE WHEN r.deleted = 0 AND r.paused = '' AND r.rate_limit_per_s = 0
    AND r.reaction_id IN (SELECT value FROM json_each(:reaction_ids))
    AND coalesce((
      SELECT t.next_attempt_at_ms FROM tape_tasks AS t
      WHERE t.reaction_id = r.reaction_id AND t.status IN (1, 2)
      ORDER BY t.next_attempt_at_ms LIMIT 1) > :now, true)
    THEN r.max_concurrency - (
      SELECT count(*) FROM tape_tasks AS t
      WHERE t.reaction_id = r.reaction_id AND t.status = 2 AND t.lease_expires_at_ms > :now)
    ELSE 0 END AS free
  FROM tape_reactions AS r
  WHERE r.reaction_id IN (SELECT value ->> 'reaction_id' FROM json_each(:matches))
), judged AS MATERIALIZED (
  SELECT matched.h, matched.reaction_id, slots.num_shards, matched.nth <= slots.free AND matched.overall <= :most AS is_claimed
  FROM matched JOIN slots ON slots.reaction_id = matched.reaction_id
)
INSERT INTO tape_tasks (
  task_id, reaction_id, shard, source_run_id, source_global_seq, subject, payload_json, status, attempt, attempts,
  next_attempt_at_ms, lease_owner, lease_expires_at_ms, created_at_ms, trace_id, span_id, shard_hash, source_seq, kind,
  type, schema_version, ts_ms, prev_value_json)
SELECT h ->> 'task_id', reaction_id, (h ->> 'shard_hash') % num_shards, h ->> 'run_id', h ->> 'global_seq',
       h ->> 'subject', h ->> 'payload_json', CASE WHEN is_claimed THEN 2 ELSE 1 END, is_claimed, is_claimed,
       CASE WHEN is_claimed THEN :now + :lease_ms ELSE :now END, CASE WHEN is_claimed THEN :owner ELSE '' END,
       CASE WHEN is_claimed THEN :now + :lease_ms ELSE 0 END, :now, h ->> 'trace_id', h ->> 'span_id', h ->> 'shard_hash',
       h ->> 'seq', h ->> 'kind', h ->> 'type', h ->> 'schema_version', h ->> 'ts_ms', h ->> 'prev_value_json'
FROM judged
WHERE true
ON CONFLICT (source_global_seq, reaction_id) DO NOTHING
RETURNING task_id, shard, status;
