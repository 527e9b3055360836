-- name: publish
INSERT INTO core_outbox (
  id, event_type, event_version, occurred_at, source, target, content_class, channel, generation, workspace_id,
  payload, idempotency_key, trace_context, order_key, position, created_at
) VALUES (
  :event_id, :event_type, CAST(:event_version AS INTEGER), :occurred_at, :source, :target, :content_class, :channel,
  CAST(:generation AS INTEGER), :workspace_id, :payload, :idempotency_key, :trace_context, :order_key,
  (SELECT coalesce(max(position), 0) + 1 FROM core_outbox), CAST(:now_ms AS INTEGER)
);

-- name: handle
INSERT INTO core_event_handled (handler_name, idempotency_key, handled_at)
SELECT value ->> 'handler_name', value ->> 'idempotency_key', CAST(:now_ms AS INTEGER) FROM json_each(:handled)
WHERE true
ON CONFLICT (handler_name, idempotency_key) DO NOTHING RETURNING 1;

-- name: settle
UPDATE core_outbox_deliveries AS d SET
  status = s.value ->> 'status',
  attempts = d.attempts - coalesce(s.value ->> 'is_released', 0),
  lease_owner = NULL,
  last_error = coalesce(s.value ->> 'error', d.last_error),
  first_failed_at = CASE WHEN s.value ->> 'error' IS NULL THEN d.first_failed_at
                         ELSE coalesce(d.first_failed_at, CAST(:now_ms AS INTEGER)) END,
  next_attempt_at = CAST(:now_ms AS INTEGER) + (s.value ->> 'after_ms'),
  ended_at = CASE WHEN s.value ->> 'status' = 'pending' THEN NULL ELSE CAST(:now_ms AS INTEGER) END
FROM json_each(:settled) AS s
WHERE d.event_id = s.value ->> 'event_id' AND d.handler_name = s.value ->> 'handler_name'
  AND d.attempt = s.value ->> 'attempt' AND d.lease_owner = s.value ->> 'owner' AND d.status = 'in_flight'
RETURNING event_id, handler_name, attempt;

-- name: summarise
UPDATE core_outbox AS o SET
  status = s.status,
  attempts = s.attempts,
  last_error = s.last_error,
  first_failed_at = s.first_failed_at,
  ended_at = CASE WHEN s.status = 'in_flight' THEN NULL ELSE CAST(:now_ms AS INTEGER) END
FROM (
  SELECT d.event_id,
    CASE WHEN max(d.status IN ('pending', 'in_flight')) THEN 'in_flight'
         WHEN max(d.status = 'failed') THEN 'failed' ELSE 'delivered' END AS status,
    max(d.attempts) AS attempts,
    min(d.first_failed_at) AS first_failed_at,
    (SELECT e.last_error FROM core_outbox_deliveries AS e
     WHERE e.event_id = d.event_id AND e.last_error IS NOT NULL
     ORDER BY e.status = 'failed' DESC, e.next_attempt_at DESC LIMIT 1) AS last_error
  FROM core_outbox_deliveries AS d
  WHERE d.event_id IN (SELECT value FROM json_each(:ids))
  GROUP BY d.event_id
) AS s
WHERE o.id = s.event_id;

-- name: alone
SELECT 1;

-- name: register
INSERT INTO core_event_handlers (
  handler_name, generation, version, channel, event_types, target, is_ordered, max_attempts, registered_at, seen_at
)
SELECT value ->> 'handler_name', value ->> 'generation', value ->> 'version', value ->> 'channel',
  value ->> 'event_types', value ->> 'target', value ->> 'is_ordered', value ->> 'max_attempts', :now_ms, :now_ms
FROM json_each(:subscriptions) WHERE true
ON CONFLICT (handler_name, generation, version) DO UPDATE SET seen_at = max(excluded.seen_at, registered_at + 1)
RETURNING version, seen_at = registered_at;

-- name: seen
UPDATE core_event_handlers SET seen_at = max(:now_ms, registered_at + 1)
WHERE generation = :generation AND version IN (SELECT value FROM json_each(:versions))
RETURNING version;

-- name: retire
DELETE FROM core_event_handlers
WHERE generation = :generation AND handler_name IN (SELECT value FROM json_each(:handlers))
  AND version NOT IN (SELECT value FROM json_each(:versions)) AND seen_at < :now_ms - :after_ms
RETURNING handler_name;

-- name: give_up
-- Fails deliveries that no version takes any more: a dead letter can be replayed, while a delivery that is never claimed
-- would block its order_key and its row for ever.
UPDATE core_outbox_deliveries AS d SET
  status = 'failed', lease_owner = NULL, ended_at = :now_ms, first_failed_at = coalesce(d.first_failed_at, :now_ms),
  last_error = 'no version of ' || d.handler_name || ' that runs takes ' || o.event_type
FROM core_outbox AS o
WHERE o.id = d.event_id AND d.handler_name IN (SELECT value FROM json_each(:handlers))
  AND d.generation = :generation AND d.status IN ('pending', 'in_flight') AND d.next_attempt_at <= :now_ms
  AND NOT EXISTS (
    SELECT 1 FROM core_event_handlers AS h
    WHERE h.handler_name = d.handler_name AND h.generation = o.generation
      AND o.channel IN (h.channel, 'outbox_default')
      AND (h.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(h.event_types)))
      AND (o.target IS NULL OR o.target = h.target))
RETURNING event_id;

-- name: expire
-- Fails due deliveries that no version would claim again, because they were tried as often as the most patient version
-- tries. The smallest number of attempts of all versions excludes nearly all of them without reading their rows.
UPDATE core_outbox_deliveries SET
  status = 'failed', lease_owner = NULL, ended_at = :now_ms, first_failed_at = coalesce(first_failed_at, :now_ms),
  last_error = CASE status WHEN 'pending' THEN 'no attempt is left: ' ELSE 'no attempt was answered: ' END
    || coalesce(last_error, 'whoever handled it was gone')
WHERE rowid IN (
  SELECT d.rowid FROM core_outbox_deliveries AS d
  WHERE d.status IN ('pending', 'in_flight') AND d.next_attempt_at <= :now_ms AND d.generation = :generation
    AND d.handler_name IN (SELECT value FROM json_each(:handlers))
    AND d.attempts >= (
      SELECT min(max_attempts) FROM core_event_handlers
      WHERE generation = :generation AND handler_name IN (SELECT value FROM json_each(:handlers)))
    AND d.attempts >= (
      SELECT max(h.max_attempts) FROM core_outbox AS o JOIN core_event_handlers AS h
        ON h.generation = o.generation AND o.channel IN (h.channel, 'outbox_default')
        AND (h.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(h.event_types)))
        AND (o.target IS NULL OR o.target = h.target)
      WHERE o.id = d.event_id AND h.handler_name = d.handler_name)
  LIMIT 1000
)
RETURNING event_id;

-- name: events
SELECT id, event_type, event_version, occurred_at, source, target, content_class, workspace_id, payload,
  idempotency_key, trace_context, order_key
FROM core_outbox WHERE id IN (SELECT value FROM json_each(:ids));

-- name: soon
SELECT CASE WHEN EXISTS (
  SELECT 1 FROM core_outbox WHERE is_fanned_out = 0 AND generation = :generation AND deleted_at IS NULL
) THEN 0 ELSE (
  SELECT min(next_attempt_at) - :now_ms FROM core_outbox_deliveries
  WHERE handler_name IN (SELECT value FROM json_each(:handlers)) AND generation = :generation
    AND status IN ('pending', 'in_flight') AND next_attempt_at > :now_ms
) END;

-- name: extend
UPDATE core_outbox_deliveries AS d SET next_attempt_at = :now_ms + :lease_ms
FROM json_each(:claims) AS c
WHERE d.event_id = c.value ->> 'event_id' AND d.handler_name = c.value ->> 'handler_name'
  AND d.attempt = c.value ->> 'attempt' AND d.lease_owner = c.value ->> 'owner' AND d.status = 'in_flight'
RETURNING event_id, handler_name, attempt;

-- name: catch_up
-- Creates deliveries of rows that were fanned out before this version was registered, have not ended, and no other
-- version of its handler takes.
INSERT INTO core_outbox_deliveries (event_id, handler_name, generation, position, order_key, attempt, next_attempt_at)
SELECT o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt, :now_ms
FROM core_outbox AS o JOIN core_event_handlers AS h
  ON h.generation = o.generation AND o.channel IN (h.channel, 'outbox_default')
  AND (h.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(h.event_types)))
  AND (o.target IS NULL OR o.target = h.target)
WHERE o.is_fanned_out = 1 AND o.status IN ('pending', 'in_flight') AND o.deleted_at IS NULL
  AND o.generation = :generation AND h.version = :version
  AND NOT EXISTS (
    SELECT 1 FROM core_event_handlers AS k
    WHERE k.handler_name = h.handler_name AND k.generation = h.generation AND k.version <> h.version
      AND o.channel IN (k.channel, 'outbox_default')
      AND (k.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(k.event_types)))
      AND (o.target IS NULL OR o.target = k.target))
ON CONFLICT DO NOTHING RETURNING event_id;

-- name: catch_up_from
-- The same for all rows from a position on, also ended ones.
INSERT INTO core_outbox_deliveries (event_id, handler_name, generation, position, order_key, attempt, next_attempt_at)
SELECT o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt, :now_ms
FROM core_outbox AS o JOIN core_event_handlers AS h
  ON h.generation = o.generation AND o.channel IN (h.channel, 'outbox_default')
  AND (h.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(h.event_types)))
  AND (o.target IS NULL OR o.target = h.target)
WHERE o.is_fanned_out = 1 AND o.position >= :position AND o.deleted_at IS NULL
  AND o.generation = :generation AND h.version = :version
  AND NOT EXISTS (
    SELECT 1 FROM core_event_handlers AS k
    WHERE k.handler_name = h.handler_name AND k.generation = h.generation AND k.version <> h.version
      AND o.channel IN (k.channel, 'outbox_default')
      AND (k.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(k.event_types)))
      AND (o.target IS NULL OR o.target = k.target))
ON CONFLICT DO NOTHING RETURNING event_id;

-- name: take
SELECT id FROM core_outbox WHERE is_fanned_out = 0 AND generation = :generation AND deleted_at IS NULL
ORDER BY position LIMIT :most;

-- name: fan_out
INSERT INTO core_outbox_deliveries (event_id, handler_name, generation, position, order_key, attempt, next_attempt_at)
SELECT DISTINCT o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt, :now_ms
FROM core_outbox AS o JOIN core_event_handlers AS h
  ON h.generation = o.generation AND o.channel IN (h.channel, 'outbox_default')
  AND (h.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(h.event_types)))
  AND (o.target IS NULL OR o.target = h.target)
WHERE o.id IN (SELECT value FROM json_each(:ids)) AND h.generation = :generation
ON CONFLICT DO NOTHING RETURNING event_id;

-- name: mark_fanned_out
UPDATE core_outbox SET
  is_fanned_out = 1, ended_at = NULL,
  status = CASE WHEN id IN (SELECT value FROM json_each(:taken)) THEN 'in_flight' ELSE 'pending' END
WHERE id IN (SELECT value FROM json_each(:ids));

-- name: claim
UPDATE core_outbox_deliveries SET
  status = 'in_flight', attempt = attempt + 1, attempts = attempts + 1, lease_owner = :owner,
  next_attempt_at = :now_ms + :lease_ms
WHERE rowid IN (
  SELECT d.rowid FROM core_outbox_deliveries AS d
  JOIN core_event_handlers AS h ON h.handler_name = d.handler_name AND h.generation = d.generation
    AND h.version IN (SELECT value FROM json_each(:versions))
  JOIN core_outbox AS o ON o.id = d.event_id AND o.channel IN (h.channel, 'outbox_default')
    AND (h.event_types IS NULL OR o.event_type IN (SELECT value FROM json_each(h.event_types)))
    AND (o.target IS NULL OR o.target = h.target)
  WHERE d.handler_name IN (SELECT value FROM json_each(:handlers)) AND d.generation = :generation
    AND d.status IN ('pending', 'in_flight') AND d.next_attempt_at <= :now_ms AND d.attempts < h.max_attempts
    AND NOT (h.is_ordered AND d.order_key IS NOT NULL AND (
      EXISTS (
        SELECT 1 FROM core_outbox_deliveries AS b
        WHERE b.handler_name = d.handler_name AND b.order_key = d.order_key AND b.position < d.position
          AND b.status IN ('pending', 'in_flight') AND b.generation = d.generation
      ) OR EXISTS (
        SELECT 1 FROM core_outbox AS u
        WHERE u.is_fanned_out = 0 AND u.generation = d.generation AND u.order_key = d.order_key AND u.position < d.position
      )))
  ORDER BY d.next_attempt_at, d.position LIMIT :most
)
RETURNING event_id, handler_name, attempt, attempts, position;

-- name: handled
SELECT o.id, h.handler_name FROM core_outbox AS o JOIN core_event_handled AS h ON h.idempotency_key = o.idempotency_key
WHERE o.id IN (SELECT value FROM json_each(:ids)) AND h.handler_name IN (SELECT value FROM json_each(:handlers));
