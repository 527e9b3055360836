-- Numbering. VOLATILE plpgsql under READ COMMITTED, so that every statement after the lock sees all that was committed
-- before it; as one SQL statement the snapshot would be older than the lock.

-- Begins a term after the head if the server was promoted or is another one; whoever calls it has the lock. Entries
-- that this server never received may be known to readers, so no epoch, and no count of changes, of theirs comes up to
-- those of the term.
CREATE FUNCTION tape_begin_term() RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  here record; term record;
BEGIN
  SELECT s.cluster, s.timeline INTO here FROM tape_server() s;
  UPDATE tape_meta m SET epoch = greatest(m.epoch + 1, tape_now_ms()), changes = greatest(m.changes + 1, tape_now_ms()),
         cluster = here.cluster, timeline = here.timeline
   WHERE (m.cluster, m.timeline) <> (here.cluster, here.timeline)
  RETURNING m.epoch, m.archived_through INTO term;
  IF FOUND THEN
    INSERT INTO tape_terms (epoch, first_seq, cluster, timeline, began_at_ms)
      SELECT term.epoch, greatest(term.archived_through, coalesce(max(j.global_seq), 0)) + 1, here.cluster,
             here.timeline, tape_now_ms()
        FROM tape_journal j;
    PERFORM pg_notify('tape', '');
  END IF;
END $$;

-- Called on every new connection: an open session cannot come to another cluster, and nobody reads from a promoted
-- server before its term has begun.
CREATE FUNCTION tape_enter() RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF pg_is_in_recovery() THEN                                           -- a standby does not write
    RETURN;
  END IF;
  IF EXISTS (SELECT FROM tape_meta m, tape_server() s WHERE (m.cluster, m.timeline) <> (s.cluster, s.timeline)) THEN
    LOCK TABLE tape_append_lock IN SHARE UPDATE EXCLUSIVE MODE;
    PERFORM tape_begin_term();
  END IF;
END $$;

CREATE FUNCTION tape_lock() RETURNS void LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  timeline text;
BEGIN
  LOCK TABLE tape_append_lock IN SHARE UPDATE EXCLUSIVE MODE;
  SELECT m.timeline INTO timeline FROM tape_meta m;
  IF (CASE WHEN timeline = '' THEN false ELSE timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8) END) THEN
    PERFORM tape_begin_term();
  END IF;
  UPDATE tape_meta SET changes = changes + 1;
  PERFORM pg_notify('tape', '');
END $$;

-- A fork as core.child judges it: why it cannot be, with a fact, or else where the child begins.
CREATE FUNCTION tape_fork(
  child text, parent text, at_seq bigint,
  OUT why text, OUT fact bigint, OUT first_kept bigint, OUT type text, OUT lineage text)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  last bigint; ancestors jsonb;
BEGIN
  IF EXISTS (SELECT FROM tape_heads h WHERE h.run_id = child) THEN
    why := 'exists';
    RETURN;
  END IF;
  SELECT h.last_seq, h.floor, h.content_type, coalesce(h.lineage_json, '[]')::jsonb
    INTO last, first_kept, type, ancestors FROM tape_heads h WHERE h.run_id = parent;
  IF NOT FOUND THEN
    why := 'orphan';
  ELSIF at_seq > last THEN
    why := 'beyond'; fact := last;
  ELSIF at_seq + 1 < first_kept THEN
    why := 'gone'; fact := first_kept;
  ELSE                                                                  -- those who own a seq up to the fork
    SELECT jsonb_agg(jsonb_build_array(a.owner, least(a.through, at_seq)) ORDER BY a.i)::text, count(*)
      INTO lineage, fact
      FROM (SELECT e.pair ->> 0 AS owner, (e.pair ->> 1)::bigint AS through, e.i,
                   coalesce(lag((e.pair ->> 1)::bigint) OVER (ORDER BY e.i), 0) AS before
              FROM jsonb_array_elements(ancestors || jsonb_build_array(jsonb_build_array(parent, at_seq)))
                   WITH ORDINALITY e(pair, i)) a
     WHERE a.before < at_seq;
    why := CASE WHEN fact > 256 THEN 'deep' END;
  END IF;
END $$;

-- One call for a group of requests in which no verdict depends on another: no key or cell twice, a run that has an
-- expectation is touched by one request only, and a fork is alone. The columns of the events travel as text joined by
-- U+001F, which neither JSON text nor any of our names can hold; U+001E stands for NULL, and a column in which no event
-- has a value is NULL.
CREATE FUNCTION tape_append(
  now_ms bigint,
  seen_head bigint, seen_changes bigint, known_lasts bigint[],          -- what the appender knew; lasts NULL: nothing
  runs text[], run_opens boolean[], run_types text[], run_counts int[], -- the distinct runs, and their events here
  t_rq int[], t_ix int[],                                               -- which request touches which run
  rq_size int[],                                                        -- events of request 1, 2, …
  k_rq int[], k_key text[], k_digest bytea[],                           -- requests with a key (NULL: none)
  x_rq int[], x_ix int[], x_seq bigint[],                               -- expectations: request, run, last seq
  c_rq int[], c_ledger text[], c_key text[], c_seen bigint[],           -- cells: request, which, version seen
  c_status text[], c_due bigint[], c_state text[], c_app text[], c_kind text[],  -- and their next state
  e_ix text, e_ord text, e_crc text, e_run text, e_kind text, e_type text, e_subject text, e_version text,
  e_id text, e_cause text, e_trace text, e_span text, e_parent text, e_attributes text, e_payload text, e_bytes bytea[],
  f_parent text, f_at bigint,                                           -- the fork that the only request is, if it is
  OUT base bigint, OUT ts bigint, OUT epoch bigint, OUT changes bigint, OUT lasts bigint[], OUT depths int[],
  OUT refused jsonb)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  archived bigint; archived_ts bigint; journal_ts bigint; timeline text;
  states text[]; bad int[] := '{}'; n int := 0;
  fork_why text; fork_fact bigint; fork_floor bigint; fork_type text; fork_lineage text;
BEGIN
  LOCK TABLE tape_append_lock IN SHARE UPDATE EXCLUSIVE MODE;
  SELECT m.epoch, m.changes, m.archived_through, m.last_ts_ms, m.timeline
    INTO epoch, changes, archived, archived_ts, timeline FROM tape_meta m;
  -- A session that was opened on a standby survives its promotion, so this is looked at under the lock.
  IF (CASE WHEN timeline = '' THEN false ELSE timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8) END) THEN
    PERFORM tape_begin_term();
    SELECT m.epoch, m.changes INTO epoch, changes FROM tape_meta m;
  END IF;
  SELECT j.global_seq, j.ts_ms INTO base, journal_ts FROM tape_journal j ORDER BY j.global_seq DESC LIMIT 1;
  base := greatest(coalesce(base, 0), archived);
  ts := greatest(now_ms, coalesce(journal_ts, 0), archived_ts);

  IF known_lasts IS NOT NULL AND base = seen_head AND changes = seen_changes THEN
    lasts := known_lasts;                                               -- nobody wrote since: the appender knows
  ELSE
    SELECT array_agg(coalesce(h.last_seq, 0) ORDER BY r.i),
           array_agg(CASE WHEN h.run_id IS NULL AND NOT r.opens THEN 'missing'
                          WHEN h.closed_seq IS NOT NULL AND NOT r.opens THEN 'closed'
                          WHEN h.content_type <> r.type THEN h.content_type END ORDER BY r.i)
      INTO lasts, states
      FROM unnest(runs, run_opens, run_types) WITH ORDINALITY r(id, opens, type, i)
      LEFT JOIN tape_heads h ON h.run_id = r.id;
  END IF;
  IF f_parent IS NOT NULL THEN
    SELECT f.why, f.fact, f.first_kept, f.type, f.lineage
      INTO fork_why, fork_fact, fork_floor, fork_type, fork_lineage FROM tape_fork(runs[1], f_parent, f_at) f;
    lasts := ARRAY[f_at];
    states := ARRAY[NULL]::text[];
  END IF;

  IF k_rq IS NOT NULL OR x_rq IS NOT NULL OR c_rq IS NOT NULL OR e_cause IS NOT NULL OR fork_why IS NOT NULL
     OR array_remove(states, NULL) <> '{}' THEN
    -- The first objection to each request, in the order in which core.sequence looks for them.
    SELECT coalesce(array_agg(o.rq), '{}'),
           jsonb_object_agg(o.rq, jsonb_build_array(o.why, o.place, o.a, o.b)) FILTER (WHERE o.rq IS NOT NULL)
      INTO bad, refused
      FROM (SELECT DISTINCT ON (s.rq) s.* FROM (
        SELECT k.rq, 0 AS rank, 0::bigint AS turn, 0::bigint AS place, CASE WHEN t.digest = k.digest THEN 'replay' ELSE 'key' END AS why,
               t.first_seq::text AS a, t.seqs_json || ' ' || t.ts_ms AS b
          FROM unnest(k_rq, k_key, k_digest) k(rq, key, digest) JOIN tape_keys t ON t.key = k.key
        UNION ALL
        SELECT x.rq, 1, 0, x.ix, 'seq', lasts[x.ix]::text, NULL
          FROM unnest(x_rq, x_ix, x_seq) x(rq, ix, seq)
         WHERE lasts[x.ix] <> x.seq AND coalesce(states[x.ix], '') NOT IN ('missing', 'closed')
        UNION ALL
        SELECT t.rq, 2, t.i, t.ix,
               CASE WHEN states[t.ix] IN ('missing', 'closed') THEN states[t.ix] ELSE 'type' END, states[t.ix], NULL
          FROM unnest(t_rq, t_ix) WITH ORDINALITY t(rq, ix, i) WHERE states[t.ix] IS NOT NULL
        UNION ALL
        SELECT 1, 2, 0, 1, fork_why, fork_fact::text, NULL WHERE fork_why IS NOT NULL
        UNION ALL
        SELECT c.rq, 3, c.i, c.i, 'cell', coalesce(t.version, 0)::text, NULL
          FROM unnest(c_rq, c_ledger, c_key, c_seen) WITH ORDINALITY c(rq, ledger, key, seen, i)
          LEFT JOIN tape_cells t ON t.ledger = c.ledger AND t.key = c.key WHERE coalesce(t.version, 0) <> c.seen
        UNION ALL
        SELECT q.rq, 4, e.i, e.i, 'cause', base::text, NULL
          FROM unnest(string_to_array(e_cause, E'\x1f', E'\x1e')::bigint[]) WITH ORDINALITY e(cause, i)
          JOIN (SELECT row_number() OVER () AS i, s.rq
                  FROM unnest(rq_size) WITH ORDINALITY s(size, rq), generate_series(1, s.size)) q USING (i)
         WHERE e.cause > base
      ) s ORDER BY s.rq, s.rank, s.turn) o;
  END IF;

  IF bad = '{}' AND rq_size = '{1}' AND e_cause IS NULL THEN            -- one event alone: half the work of a set
    INSERT INTO tape_journal VALUES (
      base + 1, lasts[1] + 1, ts, 0, epoch, e_crc::bigint, e_run, e_kind, e_type, e_subject,
      coalesce(e_version::smallint, 1::smallint), e_id, NULL,
      coalesce(e_trace, ''), coalesce(e_span, ''), coalesce(e_parent, ''), coalesce(e_attributes, '{}'),
      e_payload, e_bytes[1]);
  ELSIF bad = '{}' THEN                                                 -- the usual case: the client's numbering stands
    INSERT INTO tape_journal
      SELECT base + e.n, lasts[e.ix] + e.ord, ts,
             CASE WHEN e.cause IS NULL THEN 0
                  ELSE coalesce((SELECT j.depth FROM tape_journal j WHERE j.global_seq = e.cause), 0) + 1 END,
             epoch, e.crc, e.run, e.kind, e.type, e.subject, coalesce(e.version, 1::smallint), e.id, e.cause,
             coalesce(e.trace, ''), coalesce(e.span, ''), coalesce(e.parent, ''), coalesce(e.attributes, '{}'),
             e.payload, e.bytes
        FROM unnest(
          string_to_array(e_ix, E'\x1f')::int[], string_to_array(e_ord, E'\x1f')::int[],
          string_to_array(e_crc, E'\x1f')::bigint[], string_to_array(e_run, E'\x1f'), string_to_array(e_kind, E'\x1f'),
          string_to_array(e_type, E'\x1f'), string_to_array(e_subject, E'\x1f'),
          string_to_array(e_version, E'\x1f')::smallint[], string_to_array(e_id, E'\x1f'),
          string_to_array(e_cause, E'\x1f', E'\x1e')::bigint[], string_to_array(e_trace, E'\x1f'),
          string_to_array(e_span, E'\x1f'), string_to_array(e_parent, E'\x1f'), string_to_array(e_attributes, E'\x1f'),
          string_to_array(e_payload, E'\x1f', E'\x1e'), e_bytes
        ) WITH ORDINALITY
          e(ix, ord, crc, run, kind, type, subject, version, id, cause, trace, span, parent, attributes, payload, bytes, n);
  ELSE                                                                  -- number what is left
    INSERT INTO tape_journal
      SELECT base + row_number() OVER (ORDER BY e.n), lasts[e.ix] + row_number() OVER (PARTITION BY e.ix ORDER BY e.n), ts,
             CASE WHEN e.cause IS NULL THEN 0
                  ELSE coalesce((SELECT j.depth FROM tape_journal j WHERE j.global_seq = e.cause), 0) + 1 END,
             epoch, e.crc, e.run, e.kind, e.type, e.subject, coalesce(e.version, 1::smallint), e.id, e.cause,
             coalesce(e.trace, ''), coalesce(e.span, ''), coalesce(e.parent, ''), coalesce(e.attributes, '{}'),
             e.payload, e.bytes
        FROM unnest(
          string_to_array(e_ix, E'\x1f')::int[],
          string_to_array(e_crc, E'\x1f')::bigint[], string_to_array(e_run, E'\x1f'), string_to_array(e_kind, E'\x1f'),
          string_to_array(e_type, E'\x1f'), string_to_array(e_subject, E'\x1f'),
          string_to_array(e_version, E'\x1f')::smallint[], string_to_array(e_id, E'\x1f'),
          string_to_array(e_cause, E'\x1f', E'\x1e')::bigint[], string_to_array(e_trace, E'\x1f'),
          string_to_array(e_span, E'\x1f'), string_to_array(e_parent, E'\x1f'), string_to_array(e_attributes, E'\x1f'),
          string_to_array(e_payload, E'\x1f', E'\x1e'), e_bytes
        ) WITH ORDINALITY
          e(ix, crc, run, kind, type, subject, version, id, cause, trace, span, parent, attributes, payload, bytes, n)
        JOIN (SELECT row_number() OVER () AS n, s.rq
                FROM unnest(rq_size) WITH ORDINALITY s(size, rq), generate_series(1, s.size)) q USING (n)
       WHERE q.rq <> ALL (bad);
  END IF;
  GET DIAGNOSTICS n = ROW_COUNT;

  IF n > 0 THEN
    IF bad <> '{}' THEN
      SELECT array_agg(coalesce(a.count, 0) ORDER BY r.i) INTO run_counts
        FROM unnest(runs) WITH ORDINALITY r(id, i)
        LEFT JOIN (SELECT j.run_id, count(*) FROM tape_journal j WHERE j.global_seq BETWEEN base + 1 AND base + n
                    GROUP BY j.run_id) a ON a.run_id = r.id;
    END IF;
    IF states IS NULL AND cardinality(runs) = 1 THEN
      UPDATE tape_heads h SET last_seq = lasts[1] + n WHERE h.run_id = runs[1];
    ELSIF states IS NULL THEN                                           -- all are open: half the work of an upsert
      UPDATE tape_heads h SET last_seq = lasts[r.i] + r.count
        FROM unnest(runs, run_counts) WITH ORDINALITY r(id, count, i) WHERE h.run_id = r.id AND r.count > 0;
    ELSIF f_parent IS NOT NULL THEN
      INSERT INTO tape_heads (run_id, last_seq, floor, content_type, fork_seq, lineage_json)
        VALUES (runs[1], f_at + n, fork_floor, fork_type, f_at, fork_lineage);
      INSERT INTO tape_runs (run_id, opened_at, parent_run_id, fork_seq) VALUES (runs[1], ts, f_parent, f_at);
    ELSE
      INSERT INTO tape_heads AS h (run_id, last_seq, content_type)
        SELECT r.id, lasts[r.i] + r.count, r.type
          FROM unnest(runs, run_types, run_counts) WITH ORDINALITY r(id, type, count, i) WHERE r.count > 0
        ON CONFLICT (run_id) DO UPDATE SET
          last_seq = excluded.last_seq, content_type = excluded.content_type, closed_seq = NULL,
          opened_seq = CASE WHEN h.closed_seq IS NULL THEN h.opened_seq ELSE h.last_seq END;
      INSERT INTO tape_runs (run_id, opened_at)
        SELECT r.id, ts FROM unnest(runs, run_counts, lasts) r(id, count, last) WHERE r.count > 0 AND r.last = 0
           AND NOT EXISTS (SELECT FROM tape_runs t WHERE t.run_id = r.id); -- ON CONFLICT waits for who changes the row
    END IF;
    IF e_cause IS NOT NULL THEN
      SELECT array_agg(j.depth ORDER BY j.global_seq) INTO depths
        FROM tape_journal j WHERE j.global_seq BETWEEN base + 1 AND base + n;
    END IF;
    PERFORM pg_notify('tape', (base + n)::text);
  END IF;
  IF k_rq IS NOT NULL THEN
    INSERT INTO tape_keys (key, digest, first_seq, seqs_json, ts_ms)
      SELECT k.key, k.digest, base + 1 + q.before,
             (SELECT coalesce(jsonb_agg(j.seq ORDER BY j.global_seq), '[]') FROM tape_journal j
               WHERE j.global_seq BETWEEN base + q.before + 1 AND base + q.before + q.size)::text, ts
        FROM unnest(k_rq, k_key, k_digest) k(rq, key, digest)
        JOIN (SELECT s.rq, s.size, sum(s.size) OVER (ORDER BY s.rq) - s.size AS before
                FROM unnest(rq_size) WITH ORDINALITY s(size, rq) WHERE s.rq <> ALL (bad)) q USING (rq);
  END IF;
  IF c_rq IS NOT NULL THEN
    INSERT INTO tape_cells (ledger, key, version, status, due_at_ms, state_json, app, kind)
      SELECT c.ledger, c.key, c.seen + 1, c.status, c.due, c.state, c.app, c.kind
        FROM unnest(c_rq, c_ledger, c_key, c_seen, c_status, c_due, c_state, c_app, c_kind)
             c(rq, ledger, key, seen, status, due, state, app, kind)
       WHERE c.rq <> ALL (bad)
      ON CONFLICT (ledger, key) DO UPDATE SET
        version = excluded.version, status = excluded.status, due_at_ms = excluded.due_at_ms,
        state_json = excluded.state_json, app = excluded.app, kind = excluded.kind;
  END IF;
END $$;

-- Ends a transaction block in which a staged request was refused, before its COMMIT is reached.
CREATE FUNCTION tape_demand(call int, refused jsonb) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM jsonb_each(coalesce(refused, '{}')) r WHERE r.value ->> 0 <> 'replay') THEN
    RAISE EXCEPTION 'a staged request was refused'
      USING ERRCODE = 'TP001', DETAIL = jsonb_build_object('call', call, 'refused', refused)::text;
  END IF;
END $$;

-- One event and nothing else, for a run whose last seq the appender knows: the same in half the time. It returns when
-- that was, or NULL if somebody else wrote meanwhile and it appended nothing.
CREATE FUNCTION tape_append_one(
  now_ms bigint, seen_head bigint, seen_changes bigint, last bigint,
  e_crc bigint, e_run text, e_kind text, e_type text, e_subject text, e_version smallint, e_id text,
  e_trace text, e_span text, e_parent text, e_attributes text, e_payload text, e_bytes bytea)
RETURNS bigint LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  ts bigint; epoch bigint; done text;                                   -- to assign is cheaper than to PERFORM
BEGIN
  LOCK TABLE tape_append_lock IN SHARE UPDATE EXCLUSIVE MODE;
  SELECT m.epoch, greatest(now_ms, m.last_ts_ms, j.ts_ms) INTO epoch, ts
    FROM tape_meta m
    LEFT JOIN (SELECT global_seq, ts_ms FROM tape_journal ORDER BY global_seq DESC LIMIT 1) j ON true
   WHERE m.changes = seen_changes AND greatest(m.archived_through, j.global_seq) = seen_head
     AND CASE WHEN m.timeline = '' THEN true ELSE m.timeline = left(pg_walfile_name(pg_current_wal_lsn()), 8) END;
  IF ts IS NOT NULL THEN
    INSERT INTO tape_journal VALUES (
      seen_head + 1, last + 1, ts, 0, epoch, e_crc, e_run, e_kind, e_type, e_subject, e_version, e_id, NULL,
      e_trace, e_span, e_parent, e_attributes, e_payload, e_bytes);
    UPDATE tape_heads SET last_seq = last + 1 WHERE run_id = e_run;
    done := pg_notify('tape', (seen_head + 1)::text);
  END IF;
  RETURN ts;
END $$;
