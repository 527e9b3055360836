-- The journal and everything beside it. All times are milliseconds since 1970. Collation "C" is byte order, which prefix
-- ranges of subjects need.

-- The journal, the heads of its runs, the keys of its requests, the cells of its ledgers and the runs themselves.
-- Positions have no gaps; only tape_append and tape_append_one assign them.

CREATE TABLE tape_meta (
  only_row         integer PRIMARY KEY CHECK (only_row = 1),
  epoch            bigint  NOT NULL,
  archived_through bigint  NOT NULL DEFAULT 0,
  last_ts_ms       bigint  NOT NULL DEFAULT 0,
  changes          bigint  NOT NULL DEFAULT 0,
  cluster          text    NOT NULL,
  timeline         text    NOT NULL
);

-- The terms of the journal: the first begins with its epoch, another one with each promotion or change of the server.
CREATE TABLE tape_terms (
  epoch       bigint PRIMARY KEY,
  first_seq   bigint NOT NULL,
  cluster     text   NOT NULL,
  timeline    text   NOT NULL,
  began_at_ms bigint NOT NULL
);

-- Always empty: an append locks it until its commit. An advisory lock would not do, because any role that may connect
-- can take it; only a role that may change this table can lock it. The mode is the weakest that conflicts with itself:
-- it blocks neither readers nor a dump.
CREATE TABLE tape_append_lock ();

CREATE TABLE tape_journal (
  global_seq      bigint   NOT NULL,
  seq             bigint   NOT NULL,
  ts_ms           bigint   NOT NULL,
  depth           integer  NOT NULL DEFAULT 0,
  epoch           bigint   NOT NULL,
  crc             bigint   NOT NULL,
  run_id          text     COLLATE "C" NOT NULL,
  kind            text     COLLATE "C" NOT NULL,
  type            text     COLLATE "C" NOT NULL,
  subject         text     COLLATE "C" NOT NULL,
  schema_version  smallint NOT NULL DEFAULT 1,
  event_id        text     COLLATE "C" NOT NULL,
  cause           bigint,
  trace_id        text     COLLATE "C" NOT NULL DEFAULT '',
  span_id         text     COLLATE "C" NOT NULL DEFAULT '',
  parent_span_id  text     COLLATE "C" NOT NULL DEFAULT '',
  attributes_json text     COLLATE "C" NOT NULL DEFAULT '{}',
  payload_json    text     COLLATE "C",
  payload_bytes   bytea,
  PRIMARY KEY (global_seq),
  UNIQUE (run_id, seq)
);
CREATE INDEX tape_journal_subject ON tape_journal (subject);

CREATE TABLE tape_heads (
  run_id       text   COLLATE "C" PRIMARY KEY,
  last_seq     bigint NOT NULL DEFAULT 0,
  closed_seq   bigint,
  floor        bigint NOT NULL DEFAULT 1,
  opened_seq   bigint NOT NULL DEFAULT 0,
  opened_at    bigint NOT NULL DEFAULT 0,
  content_type text   COLLATE "C",
  fork_seq     bigint,
  lineage_json text   COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX tape_heads_open ON tape_heads (opened_at, run_id)
WHERE closed_seq IS NULL AND left(run_id, 5) <> 'tape.';

CREATE TABLE tape_keys (
  key       text   COLLATE "C" PRIMARY KEY,
  digest    bytea  NOT NULL,
  first_seq bigint NOT NULL,
  seqs_json text   NOT NULL,
  ts_ms     bigint NOT NULL
);
CREATE INDEX tape_keys_age ON tape_keys (ts_ms);

CREATE TABLE tape_cells (
  ledger     text   COLLATE "C" NOT NULL,
  key        text   COLLATE "C" NOT NULL,
  version    bigint NOT NULL,
  status     text   COLLATE "C" NOT NULL,
  due_at_ms  bigint,
  state_json text   NOT NULL,
  app        text   COLLATE "C",
  kind       text   COLLATE "C",
  place      text   COLLATE "C",
  PRIMARY KEY (ledger, key)
) WITH (fillfactor = 70);
CREATE INDEX tape_cells_due ON tape_cells (ledger, status, due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX tape_cells_served ON tape_cells (ledger, status, app, kind, due_at_ms)
WHERE due_at_ms IS NOT NULL AND kind IS NOT NULL;
CREATE INDEX tape_cells_place ON tape_cells (ledger, status, place) WHERE place IS NOT NULL;

CREATE TABLE tape_runs (
  run_id        text COLLATE "C" PRIMARY KEY,
  name          text COLLATE "C",
  label         text,
  started_at    text,
  app           text,
  user_id       text,
  session       text,
  content_type  text COLLATE "C",
  ttl_s         bigint,
  expires_at    bigint,
  touched_at    bigint,
  opened_at     bigint NOT NULL,
  closed_seq    bigint,
  closed_at     bigint,
  reaped_at     bigint,
  deleted_at    bigint,
  parent_run_id text COLLATE "C",
  fork_seq      bigint,
  producer      text COLLATE "C",
  renewed_at    bigint
) WITH (fillfactor = 70);
CREATE UNIQUE INDEX tape_runs_name ON tape_runs (name) WHERE name IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX tape_runs_parent ON tape_runs (parent_run_id, opened_at, run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX tape_runs_app ON tape_runs (app, opened_at, run_id) WHERE app IS NOT NULL;
CREATE INDEX tape_runs_label ON tape_runs (label, opened_at, run_id) WHERE label IS NOT NULL;
CREATE INDEX tape_runs_opened ON tape_runs (opened_at, run_id) WHERE left(run_id, 5) <> 'tape.';
CREATE INDEX tape_runs_ended ON tape_runs (opened_at, run_id) WHERE closed_at IS NOT NULL AND left(run_id, 5) <> 'tape.';
CREATE INDEX tape_runs_closed ON tape_runs (closed_at DESC, run_id DESC) WHERE closed_at IS NOT NULL;
-- No index has renewed_at, so that renewing a lease writes to no index.
CREATE INDEX tape_runs_leased ON tape_runs (run_id) WHERE producer IS NOT NULL;

-- The clock of all leases is that of the database.
CREATE FUNCTION tape_now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- The cluster's system identifier and the timeline it writes: a promotion changes the timeline, a copy made by dump or
-- logical replication has another identifier. After a fast promotion the control file names the timeline too late, so it
-- is taken from the WAL. Each is empty where the service does not allow the function.
CREATE FUNCTION tape_server(OUT cluster text, OUT timeline text) LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  BEGIN
    SELECT system_identifier::text INTO cluster FROM pg_control_system();
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
    cluster := '';
  END;
  BEGIN
    timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  EXCEPTION WHEN insufficient_privilege OR feature_not_supported OR undefined_function THEN
    timeline := '';
  END;
END $$;

-- Appending. The functions are VOLATILE plpgsql under READ COMMITTED, so that every statement after the lock sees all
-- that was committed before it; the snapshot of a single SQL statement would be older than the lock.

-- Begins a term after the head if the server was promoted or is another one; the caller has the append lock. Readers may
-- know entries that this server never received, so the epoch and the count of changes of the new term exceed theirs.
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

-- Called on every new connection: an open session stays with its cluster, and nobody reads from a promoted server before
-- its term has begun.
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

-- Judges a fork as core.child does: the reason and a fact if it is refused, else where the child begins.
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

-- Appends a group of requests, or nothing if one of them is refused; the caller then sends the others again. No verdict
-- of a group depends on another: no key or cell occurs twice, a run with an expected seq occurs in one request only, and
-- a fork is alone. Each column of the events is one text joined by U+001F, which neither JSON text nor any of our names
-- can hold; U+001E is NULL, and a column in which no event has a value is NULL.
CREATE FUNCTION tape_append(
  now_ms bigint,
  seen_head bigint, seen_changes bigint, known_lasts bigint[],          -- what the appender knows; NULL: nothing
  runs text[], run_opens boolean[], run_types text[], run_counts int[], -- the distinct runs, and their events here
  t_rq int[], t_ix int[],                                               -- which request touches which run
  rq_size int[],                                                        -- events of request 1, 2, …
  k_rq int[], k_key text[], k_digest bytea[],                           -- requests with a key (NULL: none)
  x_rq int[], x_ix int[], x_seq bigint[],                               -- expectations: request, run, last seq
  c_rq int[], c_ledger text[], c_key text[], c_seen bigint[],           -- cells: request, which, version seen
  c_status text[], c_due bigint[], c_state text[], c_app text[], c_kind text[],
  c_place text[],                                                       -- and their next state
  e_ix text, e_ord text, e_crc text, e_run text, e_kind text, e_type text, e_subject text, e_version text,
  e_id text, e_cause text, e_trace text, e_span text, e_parent text, e_attributes text, e_payload text, e_bytes bytea[],
  f_parent text, f_at bigint,                                           -- the fork, if the only request is one
  OUT base bigint, OUT ts bigint, OUT epoch bigint, OUT changes bigint, OUT lasts bigint[], OUT depths int[],
  OUT refused jsonb)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
#variable_conflict use_column
DECLARE
  archived bigint; archived_ts bigint; journal_ts bigint; timeline text;
  states text[]; n int := 0;
  fork_why text; fork_fact bigint; fork_floor bigint; fork_type text; fork_lineage text;
BEGIN
  LOCK TABLE tape_append_lock IN SHARE UPDATE EXCLUSIVE MODE;
  SELECT m.epoch, m.changes, m.archived_through, m.last_ts_ms, m.timeline
    INTO epoch, changes, archived, archived_ts, timeline FROM tape_meta m;
  -- A session that was opened on a standby survives its promotion, so the timeline is checked under the lock.
  IF (CASE WHEN timeline = '' THEN false ELSE timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8) END) THEN
    PERFORM tape_begin_term();
    SELECT m.epoch, m.changes INTO epoch, changes FROM tape_meta m;
  END IF;
  SELECT j.global_seq, j.ts_ms INTO base, journal_ts FROM tape_journal j ORDER BY j.global_seq DESC LIMIT 1;
  base := greatest(coalesce(base, 0), archived);
  ts := greatest(now_ms, coalesce(journal_ts, 0), archived_ts);

  IF known_lasts IS NOT NULL AND base = seen_head AND changes = seen_changes THEN
    lasts := known_lasts;                                               -- nobody else has written since
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
    SELECT jsonb_object_agg(o.rq, jsonb_build_array(o.why, o.place, o.a, o.b)) FILTER (WHERE o.rq IS NOT NULL)
      INTO refused
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
    IF refused IS NOT NULL THEN
      RETURN;
    END IF;
  END IF;

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
  GET DIAGNOSTICS n = ROW_COUNT;

  IF n > 0 THEN
    IF states IS NULL THEN                                              -- all are open: half the work of an upsert
      UPDATE tape_heads h SET last_seq = lasts[r.i] + r.count
        FROM unnest(runs, run_counts) WITH ORDINALITY r(id, count, i) WHERE h.run_id = r.id AND r.count > 0;
    ELSIF f_parent IS NOT NULL THEN
      INSERT INTO tape_heads (run_id, last_seq, floor, opened_at, content_type, fork_seq, lineage_json)
        VALUES (runs[1], f_at + n, fork_floor, ts, fork_type, f_at, fork_lineage);
      INSERT INTO tape_runs (run_id, opened_at, parent_run_id, fork_seq) VALUES (runs[1], ts, f_parent, f_at);
    ELSE
      INSERT INTO tape_heads AS h (run_id, last_seq, opened_at, content_type)
        SELECT r.id, lasts[r.i] + r.count, ts, r.type
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
                FROM unnest(rq_size) WITH ORDINALITY s(size, rq)) q USING (rq);
  END IF;
  IF c_rq IS NOT NULL THEN
    INSERT INTO tape_cells (ledger, key, version, status, due_at_ms, state_json, app, kind, place)
      SELECT c.ledger, c.key, c.seen + 1, c.status, c.due, c.state, c.app, c.kind, c.place
        FROM unnest(c_rq, c_ledger, c_key, c_seen, c_status, c_due, c_state, c_app, c_kind, c_place)
             c(rq, ledger, key, seen, status, due, state, app, kind, place)
      ON CONFLICT (ledger, key) DO UPDATE SET
        version = excluded.version, status = excluded.status, due_at_ms = excluded.due_at_ms,
        state_json = excluded.state_json, app = excluded.app, kind = excluded.kind,
        place = excluded.place;
  END IF;
END $$;

-- Appends one event to a run whose last seq the appender knows, in half the time of tape_append. Returns the time of the
-- entry, or NULL, and appends nothing, if somebody else has written since.
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

-- Reactions and their tasks. tape_match_cursor is the position up to which all caught-up reactions have been matched; its
-- version changes with every page.

CREATE TABLE tape_match_cursor (
  only_row   integer PRIMARY KEY CHECK (only_row = 1),
  version    bigint  NOT NULL DEFAULT 0,
  cursor     bigint  NOT NULL DEFAULT 0,
  matched_at bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO tape_match_cursor (only_row) VALUES (1);

-- The columns of the definition are the newest registration. The matcher uses state_json, which it writes when it reads
-- the entry of the registration; until then it is empty. own_cursor is set while a reaction is not caught up.
CREATE TABLE tape_reactions (
  reaction_id         text    COLLATE "C" PRIMARY KEY,
  name                text    NOT NULL,
  subject_pattern     text    COLLATE "C" NOT NULL,
  predicate_cel       text    NOT NULL DEFAULT '',
  handler_kind        smallint NOT NULL,
  agent_app           text    NOT NULL DEFAULT '',
  publish_target      text    NOT NULL DEFAULT '',
  max_concurrency     integer NOT NULL DEFAULT 1,
  rate_limit_per_s    integer NOT NULL DEFAULT 0,
  debounce_ms         integer NOT NULL DEFAULT 0,
  retry_max           integer NOT NULL DEFAULT 5,
  retry_backoff_ms    integer NOT NULL DEFAULT 1000,
  dlq_after_n         integer NOT NULL DEFAULT 5,
  num_shards          integer NOT NULL DEFAULT 1,
  timeout_ms          integer NOT NULL DEFAULT 3600000,
  created_at_ms       bigint  NOT NULL,
  deleted             integer NOT NULL DEFAULT 0,
  bootstrap_from_head integer NOT NULL DEFAULT 0,
  paused              text    NOT NULL DEFAULT '',
  own_cursor          bigint,
  state_json          text    NOT NULL DEFAULT '',
  state_version       bigint  NOT NULL DEFAULT 0,
  errors              bigint  NOT NULL DEFAULT 0,
  last_error          text    NOT NULL DEFAULT ''
);
CREATE INDEX tape_reactions_state_version ON tape_reactions (state_version);

-- A row is locked only while tasks of its reaction are claimed.
CREATE TABLE tape_limits (
  reaction_id      text   COLLATE "C" PRIMARY KEY,
  next_start_at_us bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- next_attempt_at_ms of a claimed task is the end of its lease. first_at_ms is set while a debounced task is pending.
CREATE TABLE tape_tasks (
  task_id             text     COLLATE "C" PRIMARY KEY,
  reaction_id         text     COLLATE "C" NOT NULL,
  shard               integer  NOT NULL,
  source_run_id       text     COLLATE "C" NOT NULL,
  source_global_seq   bigint   NOT NULL,
  subject             text     COLLATE "C" NOT NULL,
  payload_json        text     COLLATE "C" NOT NULL DEFAULT '',
  status              smallint NOT NULL,
  attempts            integer  NOT NULL DEFAULT 0,
  next_attempt_at_ms  bigint   NOT NULL DEFAULT 0,
  lease_owner         text     COLLATE "C" NOT NULL DEFAULT '',
  lease_expires_at_ms bigint   NOT NULL DEFAULT 0,
  last_error          text     NOT NULL DEFAULT '',
  created_at_ms       bigint   NOT NULL,
  completed_at_ms     bigint   NOT NULL DEFAULT 0,
  trace_id            text     COLLATE "C" NOT NULL DEFAULT '',
  span_id             text     COLLATE "C" NOT NULL DEFAULT '',
  attempt             bigint   NOT NULL DEFAULT 0,
  shard_hash          bigint   NOT NULL DEFAULT 0,
  source_seq          bigint   NOT NULL DEFAULT 0,
  kind                text     COLLATE "C" NOT NULL DEFAULT '',
  type                text     COLLATE "C" NOT NULL DEFAULT '',
  schema_version      smallint NOT NULL DEFAULT 1,
  ts_ms               bigint   NOT NULL DEFAULT 0,
  prev_value_json     text     COLLATE "C" NOT NULL DEFAULT '',
  first_at_ms         bigint   NOT NULL DEFAULT 0,
  coalesced           integer  NOT NULL DEFAULT 0,
  UNIQUE (source_global_seq, reaction_id)
);
CREATE INDEX tape_tasks_due ON tape_tasks (reaction_id, next_attempt_at_ms, task_id) WHERE status IN (1, 2);
CREATE INDEX tape_tasks_leased ON tape_tasks (reaction_id, lease_expires_at_ms) WHERE status = 2;
CREATE INDEX tape_tasks_dead ON tape_tasks (reaction_id, task_id) WHERE status = 5;
CREATE UNIQUE INDEX tape_tasks_waiting ON tape_tasks (reaction_id, subject) WHERE status = 1 AND first_at_ms > 0;

CREATE VIEW tape_reaction_cursors AS
SELECT r.reaction_id, s.shard, coalesce(r.own_cursor, p.cursor) AS last_global_seq,
       p.matched_at AS last_processed_at_ms
FROM tape_reactions AS r CROSS JOIN LATERAL generate_series(0, r.num_shards - 1) AS s(shard) CROSS JOIN tape_match_cursor AS p;

-- Tasks that were claimed as they were matched. A worker in the matcher's process gets one row for each page and reaction
-- instead of one row of tape_tasks for each match; tape_finish inserts tasks that are done into tape_tasks when they
-- end. Every other change needs rows of tape_tasks: tape_materialize_claims makes them first. Each function finds its
-- rows by key, because Postgres keeps a plan that it made while the tables were small.
-- positions rise; shard_hashes has one hash for each position, or a single one if all entries are of one run.
CREATE TABLE tape_page_claims (
  claim_id            bigint  GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
  reaction_id         text    COLLATE "C" NOT NULL,
  task_prefix         text    COLLATE "C" NOT NULL,
  lease_owner         text    COLLATE "C" NOT NULL,
  lease_expires_at_ms bigint  NOT NULL,
  created_at_ms       bigint  NOT NULL,
  size                integer NOT NULL,
  finished            integer NOT NULL DEFAULT 0,
  first_position      bigint  NOT NULL,
  last_position       bigint  NOT NULL,
  positions           bigint[] NOT NULL,
  shard_hashes        bigint[] NOT NULL
) WITH (fillfactor = 50);
ALTER TABLE tape_page_claims ALTER COLUMN positions SET STORAGE EXTERNAL, ALTER COLUMN shard_hashes SET STORAGE EXTERNAL;

CREATE FUNCTION tape_task_id(prefix text, "position" bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN prefix || '.' || lpad("position"::text, 15, '0');

-- The value before the change that an entry of kind 'value' records.
CREATE FUNCTION tape_previous(kind text, payload_json text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE
  RETURN CASE WHEN kind = 'value' THEN coalesce(payload_json::json ->> 'prev_value_json', '') ELSE '' END;

-- The unfinished tasks of page claims, with the columns of tape_tasks.
CREATE VIEW tape_page_claimed_tasks AS
SELECT c.claim_id, c.task_prefix, tape_task_id(c.task_prefix, j.global_seq) COLLATE "C" AS task_id, c.reaction_id,
       (coalesce(p.hash, c.shard_hashes[1]) % r.num_shards)::integer AS shard, j.run_id AS source_run_id,
       j.seq AS source_seq, p.position AS source_global_seq, j.kind, j.type, j.subject, j.schema_version, j.ts_ms,
       coalesce(j.payload_json, '') AS payload_json, tape_previous(j.kind, j.payload_json) AS prev_value_json,
       2::smallint AS status, 1::bigint AS attempt, 1 AS attempts, c.lease_expires_at_ms AS next_attempt_at_ms,
       c.lease_owner, c.lease_expires_at_ms, '' AS last_error, 0 AS coalesced, c.created_at_ms,
       0::bigint AS completed_at_ms, j.trace_id, j.span_id, coalesce(p.hash, c.shard_hashes[1]) AS shard_hash
FROM tape_page_claims AS c
CROSS JOIN LATERAL unnest(c.positions, c.shard_hashes) AS p("position", hash)
CROSS JOIN LATERAL (SELECT e.* FROM tape_journal AS e WHERE e.global_seq = p.position OFFSET 0) AS j
JOIN tape_reactions AS r ON r.reaction_id = c.reaction_id
WHERE c.finished = 0 OR NOT EXISTS (
  SELECT FROM tape_tasks AS t WHERE t.source_global_seq = p.position AND t.reaction_id = c.reaction_id OFFSET 0);

-- Turns page claims whose leases end by p_until, of one owner or (NULL) of all, into claimed rows of tape_tasks.
-- Returns how many claims those were.
CREATE FUNCTION tape_materialize_claims(p_owner text, p_until bigint) RETURNS integer
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  ids bigint[];
BEGIN
  ids := ARRAY(
    SELECT c.claim_id FROM tape_page_claims AS c
    WHERE (p_owner IS NULL OR c.lease_owner = p_owner) AND c.lease_expires_at_ms <= p_until
    ORDER BY c.claim_id FOR UPDATE);
  IF ids <> '{}' THEN
    INSERT INTO tape_tasks (
      task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject, schema_version,
      ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms, lease_owner,
      lease_expires_at_ms, created_at_ms, trace_id, span_id, shard_hash)
    SELECT v.task_id, v.reaction_id, v.shard, v.source_run_id, v.source_seq, v.source_global_seq, v.kind, v.type,
           v.subject, v.schema_version, v.ts_ms, v.payload_json, v.prev_value_json, v.status, v.attempt, v.attempts,
           v.next_attempt_at_ms, v.lease_owner, v.lease_expires_at_ms, v.created_at_ms, v.trace_id, v.span_id,
           v.shard_hash
    FROM tape_page_claimed_tasks AS v
    WHERE v.claim_id = ANY (ids)
    ON CONFLICT (source_global_seq, reaction_id) DO NOTHING;
    DELETE FROM tape_page_claims WHERE claim_id = ANY (ids);
  END IF;
  RETURN cardinality(ids);
END $$;

-- How many matches of a reaction a worker may claim as they are matched: none if an older task is due, or if a task of
-- these positions exists already.
CREATE FUNCTION tape_free_slots(p_reaction_id text, p_now bigint, p_first bigint, p_last bigint) RETURNS bigint
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT CASE
      WHEN r.deleted <> 0 OR r.paused <> '' OR r.rate_limit_per_s <> 0
        OR EXISTS (SELECT FROM tape_page_claims AS c WHERE c.reaction_id = p_reaction_id AND c.lease_expires_at_ms <= p_now)
        OR EXISTS (
          SELECT FROM tape_tasks AS t
          WHERE t.reaction_id = p_reaction_id AND t.source_global_seq BETWEEN p_first AND p_last)
        OR (
          SELECT t.next_attempt_at_ms FROM tape_tasks AS t
          WHERE t.reaction_id = p_reaction_id AND t.status IN (1, 2)
          ORDER BY t.next_attempt_at_ms LIMIT 1) <= p_now
      THEN 0
      ELSE r.max_concurrency - (
          SELECT count(*) FROM tape_tasks AS t
          WHERE t.reaction_id = p_reaction_id AND t.status = 2 AND t.lease_expires_at_ms > p_now)
        - (SELECT coalesce(sum(c.size - c.finished), 0) FROM tape_page_claims AS c WHERE c.reaction_id = p_reaction_id)
      END
    FROM tape_reactions AS r WHERE r.reaction_id = p_reaction_id);
END $$;

-- Writes matches, reaction by reaction: as many as p_slots and the reaction's limits allow are claimed for p_owner, the
-- others become pending tasks. Returns how many of each reaction were claimed; NULL, and writes nothing, if an entry is
-- no longer in the journal. The caller has locked tape_match_cursor, as trimming does. Each statement sees what was
-- committed when it had its locks.
CREATE FUNCTION tape_claim_matches(
  p_now bigint, p_lowest bigint, p_reaction_ids text[], p_prefixes text[], p_sizes integer[], p_positions bigint[],
  p_hashes bigint[], p_claimable text[], p_owner text, p_slots bigint, p_lease_ms bigint)
RETURNS integer[] LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  first integer := 1; last integer; slots bigint := p_slots; free bigint; positions bigint[]; hashes bigint[];
  claimed integer[] := '{}';
BEGIN
  IF (SELECT m.archived_through >= p_lowest FROM tape_meta AS m) THEN
    RETURN NULL;
  END IF;
  PERFORM 1 FROM tape_limits AS l WHERE l.reaction_id = ANY (p_claimable) ORDER BY l.reaction_id FOR UPDATE;
  FOR i IN 1 .. cardinality(p_reaction_ids) LOOP
    last := first + p_sizes[i] - 1;
    positions := p_positions[first : last];
    hashes := CASE WHEN cardinality(p_hashes) = 1 THEN p_hashes ELSE p_hashes[first : last] END;
    free := 0;
    IF slots > 0 AND p_reaction_ids[i] = ANY (p_claimable) THEN
      free := tape_free_slots(p_reaction_ids[i], p_now, positions[1], positions[p_sizes[i]]);
      free := greatest(0, least(free, slots, p_sizes[i]));
    END IF;
    IF free > 0 THEN
      INSERT INTO tape_page_claims (
        reaction_id, task_prefix, lease_owner, lease_expires_at_ms, created_at_ms, size, first_position, last_position,
        positions, shard_hashes)
      VALUES (
        p_reaction_ids[i], p_prefixes[i], p_owner, p_now + p_lease_ms, p_now, free, positions[1], positions[free],
        positions[: free], hashes[: free]);
    END IF;
    IF free < p_sizes[i] THEN
      INSERT INTO tape_tasks (
        task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject, schema_version,
        ts_ms, payload_json, prev_value_json, status, next_attempt_at_ms, created_at_ms, trace_id, span_id, shard_hash)
      SELECT tape_task_id(p_prefixes[i], u.position), r.reaction_id, coalesce(u.hash, hashes[1]) % r.num_shards,
             j.run_id, j.seq, u.position, j.kind, j.type, j.subject, j.schema_version, j.ts_ms,
             coalesce(j.payload_json, ''), tape_previous(j.kind, j.payload_json), 1, p_now, p_now, j.trace_id,
             j.span_id, coalesce(u.hash, hashes[1])
      FROM tape_reactions AS r
      CROSS JOIN unnest(positions, hashes) WITH ORDINALITY AS u("position", hash, n)
      CROSS JOIN LATERAL (SELECT e.* FROM tape_journal AS e WHERE e.global_seq = u.position OFFSET 0) AS j
      WHERE r.reaction_id = p_reaction_ids[i] AND u.n > free
      ON CONFLICT (source_global_seq, reaction_id) DO NOTHING;
    END IF;
    slots := slots - free;
    claimed := claimed || free::integer;
    first := last + 1;
  END LOOP;
  RETURN claimed;
END $$;

-- Moves the match cursor over a page of plain matches and writes them, in one call. new_version is NULL if another
-- matcher moved the cursor, or (is_trimmed) if an entry is no longer in the journal; then nothing is written.
CREATE FUNCTION tape_match_page(
  p_seen bigint, p_epoch bigint, p_cursor bigint, p_lowest bigint, p_reaction_ids text[], p_prefixes text[],
  p_sizes integer[], p_positions bigint[], p_hashes bigint[], p_claimable text[], p_owner text, p_slots bigint,
  p_lease_ms bigint,
  OUT new_version bigint, OUT at_ms bigint, OUT claimed integer[], OUT is_trimmed boolean)
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
BEGIN
  SELECT tape_now_ms() FROM tape_match_cursor
   WHERE version = p_seen AND p_epoch = (SELECT m.epoch FROM tape_meta AS m) FOR UPDATE INTO at_ms;
  IF at_ms IS NULL THEN
    RETURN;
  END IF;
  claimed := tape_claim_matches(
    at_ms, p_lowest, p_reaction_ids, p_prefixes, p_sizes, p_positions, p_hashes, p_claimable, p_owner, p_slots,
    p_lease_ms);
  is_trimmed := claimed IS NULL;
  IF NOT is_trimmed THEN
    UPDATE tape_match_cursor AS c SET version = c.version + 1, cursor = p_cursor, matched_at = at_ms
    RETURNING c.version INTO new_version;
  END IF;
END $$;

-- Finishes first attempts that succeeded: those of page claims are inserted as done tasks, all others are updated rows.
-- Returns the ids of tasks that p_owner does not hold.
CREATE FUNCTION tape_finish(p_owner text, p_prefixes text[], p_sizes integer[], p_positions bigint[]) RETURNS text[]
LANGUAGE plpgsql VOLATILE SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
DECLARE
  first integer := 1; now bigint := tape_now_ms(); refused text[]; names text[]; mine bigint[]; made bigint[]; done bigint[];
  claim tape_page_claims; is_dense boolean;
BEGIN
  PERFORM 1 FROM tape_page_claims AS c
  WHERE c.lease_owner = p_owner AND c.task_prefix = ANY (p_prefixes) AND cardinality(p_prefixes) > 1
  ORDER BY c.claim_id FOR UPDATE;                                       -- in one order, so that no two callers deadlock
  FOR i IN 1 .. cardinality(p_prefixes) LOOP
    mine := p_positions[first : first + p_sizes[i] - 1];
    first := first + p_sizes[i];
    done := '{}';
    FOR claim IN
      SELECT c.* FROM tape_page_claims AS c
      WHERE c.lease_owner = p_owner AND c.task_prefix = p_prefixes[i]
        AND c.first_position <= mine[cardinality(mine)] AND c.last_position >= mine[1]
      ORDER BY c.claim_id FOR UPDATE
    LOOP
      is_dense := cardinality(claim.shard_hashes) = 1 AND claim.last_position - claim.first_position = claim.size - 1;
      WITH ended AS (
        SELECT g.position, claim.shard_hashes[1] AS hash
        FROM unnest(mine) AS g("position")
        WHERE is_dense AND g.position BETWEEN claim.first_position AND claim.last_position
        UNION ALL
        SELECT c.position, coalesce(c.hash, claim.shard_hashes[1])
        FROM unnest(claim.positions, claim.shard_hashes) AS c("position", hash)
        JOIN unnest(mine) AS g("position") ON g.position = c.position
        WHERE NOT is_dense
      ), put AS (
        INSERT INTO tape_tasks (
          task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
          schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
          lease_owner, created_at_ms, completed_at_ms, trace_id, span_id, shard_hash)
        SELECT tape_task_id(p_prefixes[i], j.global_seq), r.reaction_id, e.hash % r.num_shards, j.run_id, j.seq,
               j.global_seq, j.kind, j.type, j.subject, j.schema_version, j.ts_ms, coalesce(j.payload_json, ''),
               tape_previous(j.kind, j.payload_json), 3, 1, 1, claim.lease_expires_at_ms, p_owner,
               claim.created_at_ms, now, j.trace_id, j.span_id, e.hash
        FROM tape_reactions AS r
        CROSS JOIN ended AS e
        CROSS JOIN LATERAL (SELECT f.* FROM tape_journal AS f WHERE f.global_seq = e.position OFFSET 0) AS j
        WHERE r.reaction_id = claim.reaction_id AND (claim.finished = 0 OR NOT EXISTS (
          SELECT FROM tape_tasks AS t
          WHERE t.source_global_seq = e.position AND t.reaction_id = claim.reaction_id OFFSET 0))
        RETURNING source_global_seq
      )
      SELECT array_agg(source_global_seq) FROM put INTO made;
      done := done || made;
      claim.finished := claim.finished + coalesce(cardinality(made), 0);
      UPDATE tape_page_claims SET finished = claim.finished WHERE claim_id = claim.claim_id AND claim.finished < size;
      DELETE FROM tape_page_claims WHERE claim_id = claim.claim_id AND claim.finished = size;
    END LOOP;
    IF cardinality(done) < p_sizes[i] THEN
      WITH found AS (
        UPDATE tape_tasks AS t SET status = 3, completed_at_ms = now, lease_expires_at_ms = 0
        WHERE t.task_id = ANY (ARRAY(SELECT tape_task_id(p_prefixes[i], g.position) FROM unnest(mine) AS g("position")))
          AND t.lease_owner = p_owner AND t.status = 2 AND t.attempt = 1
        RETURNING t.task_id
      )
      SELECT array_agg(task_id) FROM found INTO names;
      refused := refused || ARRAY(
        SELECT tape_task_id(p_prefixes[i], g.position) FROM unnest(mine) AS g("position")
        WHERE g.position NOT IN (SELECT unnest(done))
          AND tape_task_id(p_prefixes[i], g.position) NOT IN (SELECT unnest(names)));
    END IF;
  END LOOP;
  RETURN refused;
END $$;
