-- The first three run on a connection of the caller with any search path, so every name in them has its schema.

-- name: publish
-- Every parameter is text, because drivers disagree on all other types.
INSERT INTO core.outbox (
  id, event_type, event_version, occurred_at, source, target, content_class, channel, generation, workspace_id,
  payload, idempotency_key, trace_context, order_key
) VALUES (
  CAST(CAST(:event_id AS pg_catalog.text) AS pg_catalog.uuid), :event_type, CAST(CAST(:event_version AS pg_catalog.text) AS integer),
  CAST(CAST(:occurred_at AS pg_catalog.text) AS pg_catalog.timestamptz), :source, :target, :content_class, :channel,
  CAST(CAST(:generation AS pg_catalog.text) AS bigint), CAST(CAST(:workspace_id AS pg_catalog.text) AS pg_catalog.uuid),
  CAST(CAST(:payload AS pg_catalog.text) AS pg_catalog.jsonb), :idempotency_key, :trace_context, :order_key
);

-- name: handle
-- The first statement of a handler's transaction: a second attempt waits here until the first has ended.
INSERT INTO core.event_handled (handler_name, idempotency_key)
SELECT DISTINCT h.handler_name, h.idempotency_key
FROM pg_catalog.jsonb_to_recordset(CAST(CAST(:handled AS pg_catalog.text) AS pg_catalog.jsonb))
  AS h(handler_name pg_catalog.text, idempotency_key pg_catalog.text)
ORDER BY h.handler_name, h.idempotency_key
ON CONFLICT (handler_name, idempotency_key) DO NOTHING RETURNING 1;

-- name: settle
-- The function records keys, locks the rows, settles deliveries and summarises, each with a snapshot of its own.
SELECT CAST(f.event_id AS pg_catalog.text), f.handler_name, f.attempt
FROM core.outbox_settle(CAST(CAST(:settled AS pg_catalog.text) AS pg_catalog.jsonb)) AS f;

-- name: alone
-- Fanning out takes it in a shared mode, so no row is fanned out to an old list of handlers after a registration.
LOCK TABLE core.outbox_fan_out_lock IN EXCLUSIVE MODE;

-- name: register
INSERT INTO core.event_handlers AS h (
  handler_name, generation, version, channel, event_types, target, is_ordered, max_attempts
)
SELECT r.handler_name, r.generation, r.version, r.channel, r.event_types, r.target, r.is_ordered, r.max_attempts
FROM jsonb_to_recordset(CAST(:subscriptions AS jsonb)) AS r(
  handler_name text, generation bigint, version text, channel text, event_types jsonb, target text,
  is_ordered boolean, max_attempts integer
)
ON CONFLICT (handler_name, generation, version) DO UPDATE SET seen_at = now()
RETURNING h.version, (xmax = 0) AS is_new;

-- name: seen
UPDATE core.event_handlers SET seen_at = now()
WHERE generation = :generation AND version IN (SELECT jsonb_array_elements_text(CAST(:versions AS jsonb)))
RETURNING version;

-- name: retire
SELECT f FROM core.outbox_retire_versions(
  :generation, ARRAY(SELECT jsonb_array_elements_text(CAST(:handlers AS jsonb))),
  ARRAY(SELECT jsonb_array_elements_text(CAST(:versions AS jsonb))), :after_ms
) AS f;

-- name: fan_out
SELECT cardinality(core.outbox_fan_out(:generation, '{}', '{}', '', now(), :most, 0));

-- name: soon
-- 0 if there are new rows that no other process is fanning out.
SELECT CASE WHEN EXISTS (
  SELECT 1 FROM core.outbox WHERE NOT is_fanned_out AND generation = :generation AND deleted_at IS NULL
  LIMIT 1 FOR UPDATE SKIP LOCKED
) THEN 0 ELSE (
  SELECT CAST(extract(epoch FROM min(f.next_attempt_at) - now()) * 1000 AS bigint)
  FROM jsonb_array_elements_text(CAST(:handlers AS jsonb)) AS n(handler_name)
  CROSS JOIN LATERAL (
    SELECT d.next_attempt_at FROM core.outbox_deliveries AS d
    WHERE d.handler_name = n.handler_name AND d.generation = :generation AND d.status IN ('pending', 'in_flight')
      AND d.next_attempt_at > now()
    ORDER BY d.next_attempt_at LIMIT 1
  ) AS f
) END;

-- name: extend
-- Rows are locked in the order in which settling locks them.
WITH held AS (
  SELECT d.event_id, d.handler_name
  FROM jsonb_to_recordset(CAST(:claims AS jsonb)) AS c(event_id uuid, handler_name text, owner text, attempt bigint)
  JOIN core.outbox_deliveries AS d
    ON d.event_id = c.event_id AND d.handler_name = c.handler_name AND d.attempt = c.attempt AND d.lease_owner = c.owner
  ORDER BY d.event_id, d.handler_name FOR NO KEY UPDATE OF d
)
UPDATE core.outbox_deliveries AS d SET next_attempt_at = now() + :lease_ms * INTERVAL '1 millisecond'
FROM held WHERE d.event_id = held.event_id AND d.handler_name = held.handler_name
RETURNING CAST(d.event_id AS text), d.handler_name, d.attempt;

-- name: catch_up
-- Creates deliveries of rows that were fanned out before this version was registered, have not ended, and no other
-- version of its handler takes. Rows are locked in the order in which settling locks them, so that none ends meanwhile.
WITH found AS MATERIALIZED (
  SELECT o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt
  FROM core.outbox AS o JOIN core.event_handlers AS h
    ON core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target)
  WHERE o.is_fanned_out AND o.status IN ('pending', 'in_flight') AND o.deleted_at IS NULL
    AND o.generation = :generation AND h.generation = :generation AND h.version = :version
    AND NOT EXISTS (
      SELECT 1 FROM core.event_handlers AS k
      WHERE k.handler_name = h.handler_name AND k.version <> h.version
        AND core.outbox_matches(k, o.generation, o.channel, o.event_type, o.target))
  ORDER BY o.id FOR NO KEY UPDATE OF o
)
INSERT INTO core.outbox_deliveries (event_id, handler_name, generation, position, order_key, attempt)
SELECT f.id, f.handler_name, f.generation, f.position, f.order_key, f.attempt FROM found AS f
ON CONFLICT DO NOTHING RETURNING CAST(event_id AS text);

-- name: catch_up_from
-- The same for all rows from a position on, also ended ones.
WITH found AS MATERIALIZED (
  SELECT o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt
  FROM core.outbox AS o JOIN core.event_handlers AS h
    ON core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target)
  WHERE o.is_fanned_out AND o.position >= :position AND o.deleted_at IS NULL
    AND o.generation = :generation AND h.generation = :generation AND h.version = :version
    AND NOT EXISTS (
      SELECT 1 FROM core.event_handlers AS k
      WHERE k.handler_name = h.handler_name AND k.version <> h.version
        AND core.outbox_matches(k, o.generation, o.channel, o.event_type, o.target))
  ORDER BY o.id FOR NO KEY UPDATE OF o
)
INSERT INTO core.outbox_deliveries (event_id, handler_name, generation, position, order_key, attempt)
SELECT f.id, f.handler_name, f.generation, f.position, f.order_key, f.attempt FROM found AS f
ON CONFLICT DO NOTHING RETURNING CAST(event_id AS text);

-- name: mark_fanned_out
-- A row without a handler stays pending until a handler that takes it is registered.
UPDATE core.outbox SET
  is_fanned_out = true, ended_at = NULL,
  status = CASE WHEN jsonb_exists(CAST(:taken AS jsonb), CAST(id AS text)) THEN 'in_flight' ELSE 'pending' END
WHERE id = ANY(ARRAY(SELECT CAST(i AS uuid) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS i));

-- name: claim
-- A claim need not be on disk before its handler begins: if a crash of Postgres loses the claim, it loses the settlement
-- that was written after it, too.
SELECT c.* FROM set_config('synchronous_commit', 'off', true), core.outbox_claim(
  :generation, ARRAY(SELECT jsonb_array_elements_text(CAST(:handlers AS jsonb))),
  ARRAY(SELECT jsonb_array_elements_text(CAST(:versions AS jsonb))), :owner, :lease_ms, :most, :min_fan_out, :expires
) AS c;
