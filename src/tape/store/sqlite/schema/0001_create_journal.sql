-- The journal, the heads of its runs, the keys of its requests, the cells of its ledgers and the runs themselves.
-- Positions are gapless; nothing but the append function numbers. All times are milliseconds since 1970.

CREATE TABLE tape_meta (
  only_row         INTEGER PRIMARY KEY CHECK (only_row = 1),
  epoch            INTEGER NOT NULL,
  archived_through INTEGER NOT NULL DEFAULT 0,
  last_ts_ms       INTEGER NOT NULL DEFAULT 0,
  changes          INTEGER NOT NULL DEFAULT 0
);

CREATE TABLE tape_journal (
  global_seq      INTEGER PRIMARY KEY,
  seq             INTEGER NOT NULL,
  ts_ms           INTEGER NOT NULL,
  depth           INTEGER NOT NULL DEFAULT 0,
  epoch           INTEGER NOT NULL,
  crc             INTEGER NOT NULL,
  run_id          TEXT    NOT NULL,
  kind            TEXT    NOT NULL,
  type            TEXT    NOT NULL,
  subject         TEXT    NOT NULL,
  schema_version  INTEGER NOT NULL DEFAULT 1,
  event_id        TEXT    NOT NULL,
  cause           INTEGER,
  trace_id        TEXT    NOT NULL DEFAULT '',
  span_id         TEXT    NOT NULL DEFAULT '',
  parent_span_id  TEXT    NOT NULL DEFAULT '',
  attributes_json TEXT    NOT NULL DEFAULT '{}',
  payload_json    TEXT,
  payload_bytes   BLOB,
  UNIQUE (run_id, seq)
);
CREATE INDEX tape_journal_subject ON tape_journal (subject);

CREATE TABLE tape_heads (
  run_id       TEXT    PRIMARY KEY,
  last_seq     INTEGER NOT NULL DEFAULT 0,
  closed_seq   INTEGER,
  floor        INTEGER NOT NULL DEFAULT 1,
  opened_seq   INTEGER NOT NULL DEFAULT 0,
  content_type TEXT,
  fork_seq     INTEGER,
  lineage_json TEXT
) WITHOUT ROWID;
CREATE INDEX tape_heads_open ON tape_heads (run_id) WHERE closed_seq IS NULL AND substr(run_id, 1, 5) <> 'tape.';

CREATE TABLE tape_keys (
  key       TEXT    PRIMARY KEY,
  digest    BLOB    NOT NULL,
  first_seq INTEGER NOT NULL,
  seqs_json TEXT    NOT NULL,
  ts_ms     INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX tape_keys_age ON tape_keys (ts_ms);

CREATE TABLE tape_cells (
  ledger     TEXT    NOT NULL,
  key        TEXT    NOT NULL,
  version    INTEGER NOT NULL,
  status     TEXT    NOT NULL,
  due_at_ms  INTEGER,
  state_json TEXT    NOT NULL,
  app        TEXT,
  kind       TEXT,
  PRIMARY KEY (ledger, key)
) WITHOUT ROWID;
CREATE INDEX tape_cells_due ON tape_cells (ledger, status, due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX tape_cells_served ON tape_cells (ledger, status, app, kind, due_at_ms)
WHERE due_at_ms IS NOT NULL AND kind IS NOT NULL;

CREATE TABLE tape_runs (
  run_id        TEXT PRIMARY KEY,
  name          TEXT,
  label         TEXT,
  started_at    TEXT,
  app           TEXT,
  user_id       TEXT,
  session       TEXT,
  content_type  TEXT,
  ttl_s         INTEGER,
  expires_at    INTEGER,
  touched_at    INTEGER,
  opened_at     INTEGER NOT NULL,
  closed_seq    INTEGER,
  closed_at     INTEGER,
  reaped_at     INTEGER,
  deleted_at    INTEGER,
  parent_run_id TEXT,
  fork_seq      INTEGER,
  producer      TEXT,
  renewed_at    INTEGER
);
CREATE UNIQUE INDEX tape_runs_name ON tape_runs (name) WHERE name IS NOT NULL AND deleted_at IS NULL;
CREATE INDEX tape_runs_parent ON tape_runs (parent_run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX tape_runs_closed ON tape_runs (closed_at DESC, run_id DESC) WHERE closed_at IS NOT NULL;
CREATE INDEX tape_runs_leased ON tape_runs (run_id) WHERE producer IS NOT NULL;
