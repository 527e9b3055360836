-- The outbox: what business transactions say, who handles it, and what was handled. All of it lies in one schema.

-- A published row is in two indexes: each further one would be paid for inside the business transaction. attempt is where
-- the fencing numbers of its deliveries go on after they were taken back.
CREATE TABLE core.outbox (
  id              uuid        PRIMARY KEY DEFAULT gen_random_uuid(),
  event_type      text        NOT NULL,
  event_version   integer     NOT NULL DEFAULT 1,
  occurred_at     timestamptz NOT NULL DEFAULT now(),
  source          text        NOT NULL,
  target          text,
  content_class   text        NOT NULL DEFAULT 'internal',
  channel         text        NOT NULL DEFAULT 'outbox_default',
  generation      bigint      NOT NULL DEFAULT 0,
  workspace_id    uuid,
  payload         jsonb       NOT NULL,
  idempotency_key text        NOT NULL,
  trace_context   text,
  status          text        NOT NULL DEFAULT 'pending'
                  CHECK (status IN ('pending', 'in_flight', 'delivered', 'failed')),
  attempts        integer     NOT NULL DEFAULT 0,
  last_error      text,
  failure_history jsonb       NOT NULL DEFAULT '[]',
  first_failed_at timestamptz,
  deleted_at      timestamptz,
  order_key       text,
  is_fanned_out        boolean     NOT NULL DEFAULT false,
  attempt         bigint      NOT NULL DEFAULT 0,
  position        bigint      GENERATED ALWAYS AS IDENTITY,
  created_at      timestamptz NOT NULL DEFAULT now(),
  ended_at        timestamptz
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX outbox_new ON core.outbox (generation, position) WHERE NOT is_fanned_out;
CREATE INDEX outbox_new_keys ON core.outbox (generation, order_key, position)
  WHERE NOT is_fanned_out AND order_key IS NOT NULL;
CREATE INDEX outbox_open ON core.outbox (generation, position)
  WHERE is_fanned_out AND status IN ('pending', 'in_flight');
CREATE INDEX outbox_failed ON core.outbox (position) WHERE status = 'failed';
CREATE INDEX outbox_age ON core.outbox (created_at) WHERE status IN ('delivered', 'failed');

-- One for each handler of a row: the row's own status is their summary. While one is in flight, next_attempt_at is the
-- end of its lease, and only then it has an owner; attempt is the fencing number.
CREATE TABLE core.outbox_deliveries (
  event_id        uuid        NOT NULL,
  handler_name    text        COLLATE "C" NOT NULL,
  generation      bigint      NOT NULL,
  position        bigint      NOT NULL,
  order_key       text,
  status          text        NOT NULL DEFAULT 'pending'
                  CHECK (status IN ('pending', 'in_flight', 'delivered', 'failed')),
  attempt         bigint      NOT NULL DEFAULT 0,
  attempts        integer     NOT NULL DEFAULT 0,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  lease_owner     text,
  last_error      text,
  first_failed_at timestamptz,
  ended_at        timestamptz,
  PRIMARY KEY (event_id, handler_name)
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
CREATE INDEX outbox_deliveries_due ON core.outbox_deliveries (handler_name, generation, next_attempt_at, position)
  WHERE status IN ('pending', 'in_flight');
CREATE INDEX outbox_deliveries_order ON core.outbox_deliveries (handler_name, order_key, position)
  WHERE status IN ('pending', 'in_flight') AND order_key IS NOT NULL;

CREATE TABLE core.event_handled (
  handler_name    text        COLLATE "C" NOT NULL,
  idempotency_key text        COLLATE "C" NOT NULL,
  handled_at      timestamptz NOT NULL DEFAULT now(),
  UNIQUE (handler_name, idempotency_key)
);
CREATE INDEX event_handled_age ON core.event_handled (handled_at);

-- Empty for good: who deals rows out shares its lock, who changes what handlers take has it alone. A number would do for a
-- lock, but anybody who may connect can lock a number.
CREATE TABLE core.outbox_fan_out_lock ();

-- A handler has a row for each version of its definition that runs or ran lately: deployments register side by side,
-- and a row of the outbox is for a handler if one of its versions takes it.
CREATE TABLE core.event_handlers (
  handler_name  text        COLLATE "C" NOT NULL,
  generation    bigint      NOT NULL,
  version       text        COLLATE "C" NOT NULL,
  channel       text        NOT NULL,
  event_types   jsonb,
  target        text,
  is_ordered    boolean     NOT NULL DEFAULT false,
  max_attempts  integer     NOT NULL DEFAULT 6,
  registered_at timestamptz NOT NULL DEFAULT now(),
  seen_at       timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (handler_name, generation, version)
);

-- Frozen: who publishes composes the channel, and the payload of a notification is the row's id alone.
CREATE FUNCTION core.outbox_notify() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_notify(NEW.channel, NEW.id::text);
  RETURN NULL;
END $$;
CREATE TRIGGER outbox_notify AFTER INSERT ON core.outbox FOR EACH ROW EXECUTE FUNCTION core.outbox_notify();

-- Whether a handler takes a row. A row whose channel was left at its default is for whoever is of its generation.
CREATE FUNCTION core.outbox_matches(
  h core.event_handlers, p_generation bigint, p_channel text, p_event_type text, p_target text
) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN h.generation = p_generation AND p_channel IN (h.channel, 'outbox_default')
    AND (h.event_types IS NULL OR jsonb_exists(h.event_types, p_event_type))
    AND (p_target IS NULL OR p_target = h.target);

-- Begins a new cycle of a row that has ended: what went wrong is kept in its history, its key stays, so a handler that
-- succeeded before is not run again. False if there is no such row or it has not ended.
CREATE FUNCTION core.outbox_replay(p_event_id uuid, p_new_generation bigint, p_replayed_by text) RETURNS boolean
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  o core.outbox;
BEGIN
  SELECT * INTO o FROM core.outbox
  WHERE id = p_event_id AND status IN ('delivered', 'failed') AND deleted_at IS NULL FOR UPDATE;
  IF NOT FOUND THEN
    RETURN false;
  END IF;
  UPDATE core.outbox SET
    failure_history = o.failure_history || jsonb_build_array(jsonb_build_object(
      'status', o.status, 'generation', o.generation, 'attempts', o.attempts, 'last_error', o.last_error,
      'first_failed_at', o.first_failed_at, 'replayed_by', p_replayed_by, 'replayed_at', now(),
      'deliveries', (
        SELECT coalesce(jsonb_agg(jsonb_build_object('handler_name', d.handler_name, 'status', d.status,
                                                     'attempts', d.attempts, 'last_error', d.last_error)
                                  ORDER BY d.handler_name), '[]'::jsonb)
        FROM core.outbox_deliveries AS d WHERE d.event_id = p_event_id))),
    status = 'pending', attempts = 0, last_error = NULL, first_failed_at = NULL, ended_at = NULL, is_fanned_out = false,
    attempt = greatest(o.attempt, (SELECT max(d.attempt) FROM core.outbox_deliveries AS d WHERE d.event_id = p_event_id)),
    generation = p_new_generation,
    channel = CASE WHEN o.channel ~ '^outbox_gen_[0-9]+'
                   THEN regexp_replace(o.channel, '^outbox_gen_[0-9]+', 'outbox_gen_' || p_new_generation)
                   ELSE 'outbox_gen_' || p_new_generation END
  WHERE id = p_event_id RETURNING channel INTO o.channel;
  DELETE FROM core.outbox_deliveries WHERE event_id = p_event_id;
  PERFORM pg_notify(o.channel, p_event_id::text);
  RETURN true;
END $$;

-- Who calls it has locked the rows before, in their order, so that a summary is made of what is true by then.
CREATE FUNCTION core.outbox_summarise(p_ids uuid[]) RETURNS void LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  UPDATE core.outbox AS o SET
    status = s.status,
    attempts = s.attempts,
    last_error = s.last_error,
    first_failed_at = s.first_failed_at,
    ended_at = CASE WHEN s.status = 'in_flight' THEN NULL ELSE now() END
  FROM unnest(p_ids) AS i(id) CROSS JOIN LATERAL (
    SELECT
      CASE WHEN bool_or(d.status IN ('pending', 'in_flight')) THEN 'in_flight'
           WHEN bool_or(d.status = 'failed') THEN 'failed' ELSE 'delivered' END AS status,
      max(d.attempts) AS attempts,
      min(d.first_failed_at) AS first_failed_at,
      CASE WHEN bool_or(d.last_error IS NOT NULL) THEN (
        SELECT e.last_error FROM core.outbox_deliveries AS e WHERE e.event_id = i.id AND e.last_error IS NOT NULL
        ORDER BY e.status = 'failed' DESC, e.next_attempt_at DESC LIMIT 1
      ) END AS last_error
    FROM core.outbox_deliveries AS d WHERE d.event_id = i.id HAVING count(*) > 0
  ) AS s
  WHERE o.id = i.id;
END $$;

-- Locks of the outbox are taken in one order everywhere, so that nobody waits for whoever waits for them: outbox_fan_out_lock,
-- then rows, then deliveries, each of them by its key.

-- Settles attempts and says which of them were the newest; an earlier one is told so by its absence. What was handled
-- outside a transaction of ours is remembered first, in its order. Here as in outbox_claim nothing is planned again, and
-- every row is found by its key: what has been delivered, and what is known of it, must not change how it is done.
CREATE FUNCTION core.outbox_settle(p_settled jsonb) RETURNS TABLE (event_id uuid, handler_name text, attempt bigint)
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  v_ids uuid[] := ARRAY(SELECT DISTINCT s.event_id FROM jsonb_to_recordset(p_settled) AS s(event_id uuid) ORDER BY 1);
BEGIN
  INSERT INTO core.event_handled (handler_name, idempotency_key)
  SELECT DISTINCT s.handler_name, s.idempotency_key
  FROM jsonb_to_recordset(p_settled) AS s(handler_name text, idempotency_key text)
  WHERE s.idempotency_key IS NOT NULL ORDER BY s.handler_name, s.idempotency_key
  ON CONFLICT (handler_name, idempotency_key) DO NOTHING;
  PERFORM 1 FROM core.outbox WHERE id = ANY (v_ids) ORDER BY id FOR NO KEY UPDATE;
  RETURN QUERY
  UPDATE core.outbox_deliveries AS d SET
    status = s.status,
    attempts = d.attempts - CASE WHEN s.is_released THEN 1 ELSE 0 END,
    lease_owner = NULL,
    last_error = coalesce(s.error, d.last_error),
    first_failed_at = CASE WHEN s.error IS NULL THEN d.first_failed_at ELSE coalesce(d.first_failed_at, now()) END,
    next_attempt_at = now() + s.after_ms * INTERVAL '1 millisecond',
    ended_at = CASE WHEN s.status = 'pending' THEN NULL ELSE now() END
  FROM (
    SELECT r.* FROM jsonb_to_recordset(p_settled) AS r(
      event_id uuid, handler_name text, owner text, attempt bigint, status text, error text, after_ms bigint,
      is_released boolean
    )
    ORDER BY r.event_id, r.handler_name COLLATE "C"
  ) AS s
  WHERE d.event_id = s.event_id AND d.handler_name = s.handler_name AND d.attempt = s.attempt
    AND d.lease_owner = s.owner
  RETURNING d.event_id, d.handler_name, d.attempt;
  PERFORM core.outbox_summarise(v_ids);
END $$;
