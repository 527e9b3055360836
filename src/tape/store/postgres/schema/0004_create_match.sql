-- A page of plain matches in one message: the pack is moved if it is where the page was decided, and what is wanted is
-- claimed as it is made. Each statement sees what was committed before it, so slots are counted after their locks.

CREATE FUNCTION tape_match(
  p_seen bigint, p_cursor bigint, p_hits json, p_reaction_ids text[], p_owner text, p_most bigint, p_lease_ms bigint,
  OUT moved_to bigint, OUT made_at bigint, OUT task_ids text[], OUT shards integer[])
LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
  UPDATE tape_pack SET version = version + 1, cursor = p_cursor, matched_at = tape_now_ms()
  WHERE version = p_seen
  RETURNING version, matched_at INTO moved_to, made_at;
  IF moved_to IS NULL THEN
    RETURN;
  END IF;
  PERFORM 1 FROM tape_limits WHERE reaction_id = ANY (p_reaction_ids) ORDER BY reaction_id FOR UPDATE;
  WITH made AS (
    WITH hit AS MATERIALIZED (
      SELECT h.*, row_number() OVER (PARTITION BY h.reaction_id ORDER BY h.global_seq) AS place,
             row_number() OVER (ORDER BY h.global_seq) AS overall
      FROM json_to_recordset(p_hits) AS h(
           task_id text, reaction_id text, due_at_ms bigint, prev_value_json text, global_seq bigint, seq bigint,
           run_id text, shard_hash bigint, kind text, type text, subject text, schema_version smallint, ts_ms bigint,
           payload_json text, trace_id text, span_id text)
    ), room AS MATERIALIZED (
      SELECT r.reaction_id, r.num_shards, CASE WHEN r.deleted = 0 AND r.paused = '' AND r.rate_limit_per_s = 0
        AND r.reaction_id = ANY (p_reaction_ids)
        AND coalesce((
          SELECT t.next_attempt_at_ms FROM tape_tasks AS t
          WHERE t.reaction_id = r.reaction_id AND t.status IN (1, 2)
          ORDER BY t.next_attempt_at_ms LIMIT 1) > made_at, true)
        THEN r.max_concurrency - (
          SELECT count(*) FROM tape_tasks AS t
          WHERE t.reaction_id = r.reaction_id AND t.status = 2 AND t.lease_expires_at_ms > made_at)
        ELSE 0 END AS free
      FROM tape_reactions AS r
      WHERE r.reaction_id IN (SELECT hit.reaction_id FROM hit)
    ), judged AS (
      SELECT hit.*, room.num_shards, hit.place <= room.free AND hit.overall <= p_most AS is_ours
      FROM hit JOIN room ON room.reaction_id = hit.reaction_id
    )
    INSERT INTO tape_tasks (
      task_id, reaction_id, shard, source_run_id, source_global_seq, subject, payload_json, status, attempt, attempts,
      next_attempt_at_ms, lease_owner, lease_expires_at_ms, created_at_ms, trace_id, span_id, shard_hash, source_seq, kind,
      type, schema_version, ts_ms, prev_value_json)
    SELECT j.task_id, j.reaction_id, j.shard_hash % j.num_shards, j.run_id, j.global_seq, j.subject, j.payload_json,
           CASE WHEN j.is_ours THEN 2 ELSE 1 END, j.is_ours::int, j.is_ours::int,
           CASE WHEN j.is_ours THEN made_at + p_lease_ms ELSE made_at END,
           CASE WHEN j.is_ours THEN p_owner ELSE '' END,
           CASE WHEN j.is_ours THEN made_at + p_lease_ms ELSE 0 END,
           made_at, j.trace_id, j.span_id, j.shard_hash, j.seq, j.kind, j.type, j.schema_version, j.ts_ms,
           j.prev_value_json
    FROM judged AS j
    ON CONFLICT (source_global_seq, reaction_id) DO NOTHING
    RETURNING task_id, shard, status
  )
  SELECT array_agg(task_id), array_agg(shard) FROM made WHERE status = 2 INTO task_ids, shards;
END $$;
