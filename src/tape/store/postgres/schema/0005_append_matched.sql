-- One event as tape_append_one appends it, and the task of it for the worker beside the matcher, in one commit. Whoever
-- appends holds the journal's lock, and others lock the pack before that: so it waits for nobody.
-- It returns when the event was, NULL if it appended nothing; and what else it did: the pack's new version, and when.
CREATE FUNCTION tape_append_matched(
  now_ms bigint, seen_head bigint, seen_changes bigint, last bigint,
  e_crc bigint, e_run text, e_kind text, e_type text, e_subject text, e_version smallint, e_id text,
  e_trace text, e_span text, e_parent text, e_attributes text, e_payload text, e_bytes bytea, e_word text,
  m_seen bigint, m_reaction_id text, m_prefix text, m_limit bigint, m_hash bigint, m_owner text, m_lease_ms bigint)
RETURNS bigint[] LANGUAGE plpgsql VOLATILE AS $$
DECLARE
  ts bigint; made_at bigint; free bigint; place bigint := seen_head + 1;
BEGIN
  ts := tape_append_one(
    now_ms, seen_head, seen_changes, last, e_crc, e_run, e_kind, e_type, e_subject, e_version, e_id, e_trace, e_span,
    e_parent, e_attributes, e_payload, e_bytes, e_word);
  IF ts IS DISTINCT FROM now_ms THEN                                    -- it was matched as one of that moment
    RETURN ARRAY[ts];
  END IF;
  PERFORM 1 FROM tape_limits AS l WHERE l.reaction_id = m_reaction_id FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN ARRAY[ts];
  END IF;
  made_at := tape_now_ms();
  SELECT m_limit - coalesce(sum(c.size - c.ended), 0) INTO free         -- as long as nothing waits, that is all there is
  FROM tape_claims AS c
  WHERE c.reaction_id = m_reaction_id
  HAVING coalesce(min(c.lease_expires_at_ms) > made_at, true) AND NOT EXISTS (
    SELECT FROM tape_tasks AS t WHERE t.reaction_id = m_reaction_id AND t.status IN (1, 2));
  IF coalesce(free, tape_free(m_reaction_id, made_at, place, place)) < 1 THEN
    RETURN ARRAY[ts];
  END IF;
  UPDATE tape_pack SET version = version + 1, cursor = place, matched_at = made_at
  WHERE ctid = (SELECT ctid FROM tape_pack WHERE version = m_seen FOR UPDATE SKIP LOCKED);
  IF NOT FOUND THEN
    RETURN ARRAY[ts];
  END IF;
  INSERT INTO tape_claims (
    reaction_id, task_prefix, lease_owner, lease_expires_at_ms, created_at_ms, size, first_place, last_place, places, hashes)
  VALUES (
    m_reaction_id, m_prefix, m_owner, made_at + m_lease_ms, made_at, 1, place, place, ARRAY[place], ARRAY[m_hash]);
  RETURN ARRAY[ts, m_seen + 1, made_at];
END $$;
