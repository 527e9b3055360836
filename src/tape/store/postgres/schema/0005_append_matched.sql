-- One event as tape_append_one appends it, and what the worker beside the matcher is given of it, in one commit. Whoever
-- appends holds the journal's lock, and others lock the pack before that: so it waits for nobody and gives all or nothing.
-- It returns when the event was, NULL if it appended nothing; and what else it did: the pack's new version, and when.
CREATE FUNCTION tape_append_matched(
  now_ms bigint, seen_head bigint, seen_changes bigint, last bigint,
  e_crc bigint, e_run text, e_kind text, e_type text, e_subject text, e_version smallint, e_id text,
  e_trace text, e_span text, e_parent text, e_attributes text, e_payload text, e_bytes bytea,
  m_seen bigint, m_reaction_ids text[], m_prefixes text[], m_limits bigint[],
  m_hashes bigint[], m_owner text, m_lease_ms bigint)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  ts bigint; made_at bigint; place bigint := seen_head + 1; locked integer; free bigint;
BEGIN
  ts := tape_append_one(
    now_ms, seen_head, seen_changes, last, e_crc, e_run, e_kind, e_type, e_subject, e_version, e_id, e_trace, e_span,
    e_parent, e_attributes, e_payload, e_bytes);
  IF ts IS DISTINCT FROM now_ms THEN                                    -- it was matched as one of that moment
    RETURN ARRAY[ts];
  END IF;
  PERFORM 1 FROM tape_limits AS l WHERE l.reaction_id = ANY (m_reaction_ids) FOR UPDATE SKIP LOCKED;
  GET DIAGNOSTICS locked = ROW_COUNT;
  IF locked < cardinality(m_reaction_ids) THEN
    RETURN ARRAY[ts];
  END IF;
  made_at := tape_now_ms();
  FOR i IN 1 .. cardinality(m_reaction_ids) LOOP
    SELECT m_limits[i] - coalesce(sum(c.size - c.ended), 0) INTO free   -- as long as nothing waits, that is all there is
    FROM tape_claims AS c
    WHERE c.reaction_id = m_reaction_ids[i]
    HAVING coalesce(min(c.lease_expires_at_ms) > made_at, true) AND NOT EXISTS (
      SELECT FROM tape_tasks AS t WHERE t.reaction_id = m_reaction_ids[i] AND t.status IN (1, 2));
    IF coalesce(free, tape_free(m_reaction_ids[i], made_at, place, place)) < 1 THEN
      RETURN ARRAY[ts];
    END IF;
  END LOOP;
  WITH moved AS (
    UPDATE tape_pack SET version = version + 1, cursor = place, matched_at = made_at
    WHERE ctid = (SELECT ctid FROM tape_pack WHERE version = m_seen FOR UPDATE SKIP LOCKED)
    RETURNING version
  )
  INSERT INTO tape_claims (
    reaction_id, task_prefix, lease_owner, lease_expires_at_ms, created_at_ms, size, first_place, last_place, places, hashes)
  SELECT m.reaction_id, m.prefix, m_owner, made_at + m_lease_ms, made_at, 1, place, place, ARRAY[place], m_hashes
  FROM moved, unnest(m_reaction_ids, m_prefixes) AS m(reaction_id, prefix);
  RETURN CASE WHEN FOUND THEN ARRAY[ts, m_seen + 1, made_at] ELSE ARRAY[ts] END;
END $$;
