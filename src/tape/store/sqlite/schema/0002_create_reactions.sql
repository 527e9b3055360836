-- Reactions, the pack of those that are caught up, and the tasks they make. All times are milliseconds since 1970.

CREATE TABLE tape_match_cursor (
  only_row   INTEGER PRIMARY KEY CHECK (only_row = 1),
  version    INTEGER NOT NULL DEFAULT 0,
  cursor     INTEGER NOT NULL DEFAULT 0,
  matched_at INTEGER NOT NULL DEFAULT 0
);
INSERT INTO tape_match_cursor (only_row) VALUES (1);

-- The definition is the newest that was registered. What the matcher goes by is state_json, which it writes itself when
-- it has come to the entry; it is empty until then. An own cursor is that of a reaction that is not in the pack.
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

-- Locked by whoever claims work of a reaction, and by nobody else.
CREATE TABLE tape_limits (
  reaction_id      TEXT    PRIMARY KEY,
  next_start_at_us INTEGER NOT NULL DEFAULT 0
) WITHOUT ROWID;

-- next_attempt_at_ms of a claimed task is the end of its lease. first_at_ms is set while a debounced task still waits.
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
