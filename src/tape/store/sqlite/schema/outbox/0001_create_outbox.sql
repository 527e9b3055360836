-- The outbox, with a prefix instead of a schema and without a trigger: listeners see that the file has changed.
-- All times but occurred_at are milliseconds since 1970.

CREATE TABLE core_outbox (
  id              TEXT    PRIMARY KEY,
  event_type      TEXT    NOT NULL,
  event_version   INTEGER NOT NULL DEFAULT 1,
  occurred_at     TEXT    NOT NULL,
  source          TEXT    NOT NULL,
  target          TEXT,
  content_class   TEXT    NOT NULL DEFAULT 'internal',
  channel         TEXT    NOT NULL DEFAULT 'outbox_default',
  generation      INTEGER NOT NULL DEFAULT 0,
  workspace_id    TEXT,
  payload         TEXT    NOT NULL,
  idempotency_key TEXT    NOT NULL,
  trace_context   TEXT,
  status          TEXT    NOT NULL DEFAULT 'pending'
                  CHECK (status IN ('pending', 'in_flight', 'delivered', 'failed')),
  attempts        INTEGER NOT NULL DEFAULT 0,
  last_error      TEXT,
  failure_history TEXT    NOT NULL DEFAULT '[]',
  first_failed_at INTEGER,
  deleted_at      INTEGER,
  order_key       TEXT,
  is_fanned_out        INTEGER NOT NULL DEFAULT 0,
  attempt         INTEGER NOT NULL DEFAULT 0,
  position        INTEGER,
  created_at      INTEGER NOT NULL,
  ended_at        INTEGER
);
CREATE INDEX core_outbox_position ON core_outbox (position);
CREATE INDEX core_outbox_new ON core_outbox (generation, position) WHERE is_fanned_out = 0;
CREATE INDEX core_outbox_new_keys ON core_outbox (generation, order_key, position)
  WHERE is_fanned_out = 0 AND order_key IS NOT NULL;
CREATE INDEX core_outbox_open ON core_outbox (generation, position)
  WHERE is_fanned_out = 1 AND status IN ('pending', 'in_flight');
CREATE INDEX core_outbox_status ON core_outbox (status, position);
CREATE INDEX core_outbox_age ON core_outbox (created_at) WHERE status IN ('delivered', 'failed');

CREATE TABLE core_outbox_deliveries (
  event_id        TEXT    NOT NULL,
  handler_name    TEXT    NOT NULL,
  generation      INTEGER NOT NULL,
  position        INTEGER NOT NULL,
  order_key       TEXT,
  status          TEXT    NOT NULL DEFAULT 'pending'
                  CHECK (status IN ('pending', 'in_flight', 'delivered', 'failed')),
  attempt         INTEGER NOT NULL DEFAULT 0,
  attempts        INTEGER NOT NULL DEFAULT 0,
  next_attempt_at INTEGER NOT NULL DEFAULT 0,
  lease_owner     TEXT,
  last_error      TEXT,
  first_failed_at INTEGER,
  ended_at        INTEGER,
  PRIMARY KEY (event_id, handler_name)
);
CREATE INDEX core_outbox_deliveries_due ON core_outbox_deliveries (handler_name, generation, next_attempt_at, position)
  WHERE status IN ('pending', 'in_flight');
CREATE INDEX core_outbox_deliveries_order ON core_outbox_deliveries (handler_name, order_key, position)
  WHERE status IN ('pending', 'in_flight') AND order_key IS NOT NULL;

CREATE TABLE core_event_handled (
  handler_name    TEXT    NOT NULL,
  idempotency_key TEXT    NOT NULL,
  handled_at      INTEGER NOT NULL,
  UNIQUE (handler_name, idempotency_key)
);
CREATE INDEX core_event_handled_age ON core_event_handled (handled_at);

-- A handler has a row for each version of its definition that runs or ran recently: deployments register side by side,
-- and a handler takes a row of the outbox if one of its versions does.
CREATE TABLE core_event_handlers (
  handler_name  TEXT    NOT NULL,
  generation    INTEGER NOT NULL,
  version       TEXT    NOT NULL,
  channel       TEXT    NOT NULL,
  event_types   TEXT,
  target        TEXT,
  is_ordered    INTEGER NOT NULL DEFAULT 0,
  max_attempts  INTEGER NOT NULL DEFAULT 6,
  registered_at INTEGER NOT NULL,
  seen_at       INTEGER NOT NULL,
  PRIMARY KEY (handler_name, generation, version)
);
