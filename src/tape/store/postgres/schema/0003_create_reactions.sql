-- Reactions, the pack of those that are caught up, and the tasks they make. All times are milliseconds since 1970.

CREATE TABLE tape_match_cursor (
  only_row   integer PRIMARY KEY CHECK (only_row = 1),
  version    bigint  NOT NULL DEFAULT 0,
  cursor     bigint  NOT NULL DEFAULT 0,
  matched_at bigint  NOT NULL DEFAULT 0
) WITH (fillfactor = 10);
INSERT INTO tape_match_cursor (only_row) VALUES (1);

-- The definition is the newest that was registered. What the matcher goes by is state_json, which it writes itself when
-- it has come to the entry; it is empty until then. An own cursor is that of a reaction that is not in the pack.
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

-- Locked by whoever claims work of a reaction, and by nobody else.
CREATE TABLE tape_limits (
  reaction_id      text   COLLATE "C" PRIMARY KEY,
  next_start_at_us bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- next_attempt_at_ms of a claimed task is the end of its lease. first_at_ms is set while a debounced task still waits.
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
