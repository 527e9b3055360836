-- The journal, the heads of its runs, the keys of its requests, the cells of its ledgers and the runs themselves.
-- Positions are gapless; nothing but tape_append numbers. All times are milliseconds since 1970.
-- Collation "C" is byte order: prefix ranges of subjects depend on it.

CREATE TABLE tape_meta (
  only_row         integer PRIMARY KEY CHECK (only_row = 1),
  epoch            bigint  NOT NULL,
  archived_through bigint  NOT NULL DEFAULT 0,
  last_ts_ms       bigint  NOT NULL DEFAULT 0,
  changes          bigint  NOT NULL DEFAULT 0,
  cluster          text    NOT NULL,
  timeline         text    NOT NULL
);

-- The terms of the journal: one begins with its epoch, and one more whenever the server was promoted or is another one.
CREATE TABLE tape_terms (
  epoch       bigint PRIMARY KEY,
  first_seq   bigint NOT NULL,
  cluster     text   NOT NULL,
  timeline    text   NOT NULL,
  began_at_ms bigint NOT NULL
);

-- Empty for good: who appends locks it until the commit. A number would do for a lock, but anybody who may connect can
-- lock a number, and this only who may change the table. The mode is the weakest that excludes itself: it keeps out
-- neither readers nor a dump, and needs no look at what every other session has locked.
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
  content_type text   COLLATE "C",
  fork_seq     bigint,
  lineage_json text   COLLATE "C"
) WITH (fillfactor = 70);
CREATE INDEX tape_heads_open ON tape_heads (run_id) WHERE closed_seq IS NULL AND left(run_id, 5) <> 'tape.';

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
  PRIMARY KEY (ledger, key)
) WITH (fillfactor = 70);
CREATE INDEX tape_cells_due ON tape_cells (ledger, status, due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX tape_cells_served ON tape_cells (ledger, status, app, kind, due_at_ms)
WHERE due_at_ms IS NOT NULL AND kind IS NOT NULL;

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
CREATE INDEX tape_runs_parent ON tape_runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX tape_runs_closed ON tape_runs (closed_at DESC, run_id DESC) WHERE closed_at IS NOT NULL;
-- When a lease was renewed is in no index, so that renewing it writes none.
CREATE INDEX tape_runs_leased ON tape_runs (run_id) WHERE producer IS NOT NULL;

-- One clock for all leases: that of the database.
CREATE FUNCTION tape_now_ms() RETURNS bigint LANGUAGE sql VOLATILE
  RETURN floor(extract(epoch FROM clock_timestamp()) * 1000)::bigint;

-- Which cluster this is, and on which timeline it writes: a promotion changes the timeline, a copy made by dump or by
-- logical replication has another system identifier. The control file names the timeline too late after a fast
-- promotion, so it is taken from the WAL. Empty where a service does not say.
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
