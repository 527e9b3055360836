-- The matches of a page become tasks, claimed where the worker beside the matcher has room, in one call; each statement
-- sees what was true when it had its locks. The columns come as texts, which are far cheaper to take apart than JSON.
-- A text is the values joined by a control character that none of them can hold, or the one value that all of them have.

CREATE FUNCTION tape_match_page(
  p_seen bigint, p_cursor bigint, p_task_ids text, p_matched_ids text, p_places text, p_seqs text, p_run_ids text,
  p_hashes text, p_kinds text, p_types text, p_subjects text, p_versions text, p_times text, p_payloads text,
  p_traces text, p_spans text, p_previous text[], p_reaction_ids text[], p_owner text, p_most bigint, p_lease_ms bigint,
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
      SELECT h.*, row_number() OVER (PARTITION BY h.reaction_id ORDER BY h.overall) AS place
      FROM (
        SELECT coalesce(u.task_id, p_task_ids) AS task_id, coalesce(u.reaction_id, p_matched_ids) AS reaction_id,
               coalesce(u.place, p_places)::bigint AS global_seq, coalesce(u.seq, p_seqs)::bigint AS seq,
               coalesce(u.run_id, p_run_ids) AS run_id, coalesce(u.hash, p_hashes)::bigint AS shard_hash,
               coalesce(u.kind, p_kinds) AS kind, coalesce(u.type, p_types) AS type,
               coalesce(u.subject, p_subjects) AS subject, coalesce(u.version, p_versions)::smallint AS schema_version,
               coalesce(u.time, p_times)::bigint AS ts_ms, coalesce(u.payload, p_payloads) AS payload_json,
               coalesce(u.trace, p_traces) AS trace_id, coalesce(u.span, p_spans) AS span_id,
               coalesce(u.previous, p_previous[1]) AS prev_value_json, u.overall
        FROM unnest(
               string_to_array(p_task_ids, E'\x1f'), string_to_array(p_matched_ids, E'\x1f'),
               string_to_array(p_places, E'\x1f'), string_to_array(p_seqs, E'\x1f'),
               string_to_array(p_run_ids, E'\x1f'), string_to_array(p_hashes, E'\x1f'),
               string_to_array(p_kinds, E'\x1f'), string_to_array(p_types, E'\x1f'),
               string_to_array(p_subjects, E'\x1f'), string_to_array(p_versions, E'\x1f'),
               string_to_array(p_times, E'\x1f'), string_to_array(p_payloads, E'\x1f'),
               string_to_array(p_traces, E'\x1f'), string_to_array(p_spans, E'\x1f'), p_previous)
             WITH ORDINALITY AS u(
               task_id, reaction_id, place, seq, run_id, hash, kind, type, subject, version, time, payload, trace, span,
               previous, overall)
      ) AS h
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
