-- The journal, the heads of its runs, the keys of its requests, the cells of its ledgers and the runs themselves.
-- Positions have no gaps; only the append assigns them. All times are milliseconds since 1970.

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
  opened_at    INTEGER NOT NULL DEFAULT 0,
  content_type TEXT,
  fork_seq     INTEGER,
  lineage_json TEXT
) WITHOUT ROWID;
CREATE INDEX tape_heads_open ON tape_heads (opened_at, run_id)
WHERE closed_seq IS NULL AND substr(run_id, 1, 5) <> 'tape.';

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
  place      TEXT,
  PRIMARY KEY (ledger, key)
) WITHOUT ROWID;
CREATE INDEX tape_cells_due ON tape_cells (ledger, status, due_at_ms) WHERE due_at_ms IS NOT NULL;
CREATE INDEX tape_cells_served ON tape_cells (ledger, status, app, kind, due_at_ms)
WHERE due_at_ms IS NOT NULL AND kind IS NOT NULL;
CREATE INDEX tape_cells_place ON tape_cells (ledger, status, place) WHERE place IS NOT NULL;

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
CREATE INDEX tape_runs_parent ON tape_runs (parent_run_id, opened_at, run_id) WHERE parent_run_id IS NOT NULL;
CREATE INDEX tape_runs_app ON tape_runs (app, opened_at, run_id) WHERE app IS NOT NULL;
CREATE INDEX tape_runs_label ON tape_runs (label, opened_at, run_id) WHERE label IS NOT NULL;
CREATE INDEX tape_runs_opened ON tape_runs (opened_at, run_id) WHERE substr(run_id, 1, 5) <> 'tape.';
CREATE INDEX tape_runs_ended ON tape_runs (opened_at, run_id) WHERE closed_at IS NOT NULL AND substr(run_id, 1, 5) <> 'tape.';
CREATE INDEX tape_runs_closed ON tape_runs (closed_at DESC, run_id DESC) WHERE closed_at IS NOT NULL;
CREATE INDEX tape_runs_leased ON tape_runs (run_id) WHERE producer IS NOT NULL;

-- Reactions and their tasks. tape_match_cursor is the position up to which all caught-up reactions have been matched; its
-- version changes with every page.

CREATE TABLE tape_match_cursor (
  only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
  version    INTEGER NOT NULL DEFAULT 0,
  cursor     INTEGER NOT NULL DEFAULT 0,
  matched_at INTEGER NOT NULL DEFAULT 0
);
INSERT INTO tape_match_cursor (only_row) VALUES (1);

-- The columns of the definition are the newest registration. The matcher uses state_json, which it writes when it reads
-- the entry of the registration; until then it is empty. own_cursor is set while a reaction is not caught up.
CREATE TABLE tape_reactions (
  reaction_id         TEXT    PRIMARY KEY,
  name                TEXT    NOT NULL,
  subject_pattern     TEXT    NOT NULL,
  predicate_cel       TEXT    NOT NULL DEFAULT '',
  handler_kind        INTEGER NOT NULL,
  agent_app           TEXT    NOT NULL DEFAULT '',
  publish_target      TEXT    NOT NULL DEFAULT '',
  max_concurrency     INTEGER NOT NULL DEFAULT 1,
  rate_limit_per_s    INTEGER NOT NULL DEFAULT 0,
  debounce_ms         INTEGER NOT NULL DEFAULT 0,
  retry_max           INTEGER NOT NULL DEFAULT 5,
  retry_backoff_ms    INTEGER NOT NULL DEFAULT 1000,
  dlq_after_n         INTEGER NOT NULL DEFAULT 5,
  num_shards          INTEGER NOT NULL DEFAULT 1,
  timeout_ms          INTEGER NOT NULL DEFAULT 3600000,
  created_at_ms       INTEGER NOT NULL,
  deleted             INTEGER NOT NULL DEFAULT 0,
  bootstrap_from_head INTEGER NOT NULL DEFAULT 0,
  paused              TEXT    NOT NULL DEFAULT '',
  own_cursor          INTEGER,
  state_json          TEXT    NOT NULL DEFAULT '',
  state_version       INTEGER NOT NULL DEFAULT 0,
  errors              INTEGER NOT NULL DEFAULT 0,
  last_error          TEXT    NOT NULL DEFAULT ''
);
CREATE INDEX tape_reactions_state_version ON tape_reactions (state_version);

CREATE TABLE tape_limits (
  reaction_id      TEXT    PRIMARY KEY,
  next_start_at_us INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- next_attempt_at_ms of a claimed task is the end of its lease. first_at_ms is set while a debounced task is pending.
CREATE TABLE tape_tasks (
  task_id             TEXT    PRIMARY KEY,
  reaction_id         TEXT    NOT NULL,
  shard               INTEGER NOT NULL,
  source_run_id       TEXT    NOT NULL,
  source_global_seq   INTEGER NOT NULL,
  subject             TEXT    NOT NULL,
  payload_json        TEXT    NOT NULL DEFAULT '',
  status              INTEGER NOT NULL,
  attempts            INTEGER NOT NULL DEFAULT 0,
  next_attempt_at_ms  INTEGER NOT NULL DEFAULT 0,
  lease_owner         TEXT    NOT NULL DEFAULT '',
  lease_expires_at_ms INTEGER NOT NULL DEFAULT 0,
  last_error          TEXT    NOT NULL DEFAULT '',
  created_at_ms       INTEGER NOT NULL,
  completed_at_ms     INTEGER NOT NULL DEFAULT 0,
  trace_id            TEXT    NOT NULL DEFAULT '',
  span_id             TEXT    NOT NULL DEFAULT '',
  attempt             INTEGER NOT NULL DEFAULT 0,
  shard_hash          INTEGER NOT NULL DEFAULT 0,
  source_seq          INTEGER NOT NULL DEFAULT 0,
  kind                TEXT    NOT NULL DEFAULT '',
  type                TEXT    NOT NULL DEFAULT '',
  schema_version      INTEGER NOT NULL DEFAULT 1,
  ts_ms               INTEGER NOT NULL DEFAULT 0,
  prev_value_json     TEXT    NOT NULL DEFAULT '',
  first_at_ms         INTEGER NOT NULL DEFAULT 0,
  coalesced           INTEGER NOT NULL DEFAULT 0,
  UNIQUE (source_global_seq, reaction_id)
);
CREATE INDEX tape_tasks_due ON tape_tasks (reaction_id, next_attempt_at_ms, task_id) WHERE status IN (1, 2);
CREATE INDEX tape_tasks_leased ON tape_tasks (reaction_id, lease_expires_at_ms) WHERE status = 2;
CREATE INDEX tape_tasks_dead ON tape_tasks (reaction_id, task_id) WHERE status = 5;
CREATE UNIQUE INDEX tape_tasks_waiting ON tape_tasks (reaction_id, subject) WHERE status = 1 AND first_at_ms > 0;

CREATE VIEW tape_reaction_cursors AS
WITH RECURSIVE shards (shard) AS (SELECT 0 UNION ALL SELECT shard + 1 FROM shards WHERE shard < 1023)
SELECT r.reaction_id, s.shard, coalesce(r.own_cursor, p.cursor) AS last_global_seq,
       p.matched_at AS last_processed_at_ms
FROM tape_reactions AS r JOIN shards AS s ON s.shard < r.num_shards CROSS JOIN tape_match_cursor AS p;
