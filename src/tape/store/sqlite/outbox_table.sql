-- name: page
-- Each status has its part of the index; the pages of all that are asked for are merged.
SELECT o.id FROM json_each('["pending", "in_flight", "delivered", "failed"]') AS s JOIN core_outbox AS o ON o.id IN (
  SELECT id FROM core_outbox
  WHERE status = s.value AND (:event_type = '' OR event_type = :event_type)
    AND (:generation < 0 OR generation = :generation) AND position < :before
  ORDER BY position DESC LIMIT :most
)
WHERE :status IN ('', s.value)
ORDER BY o.position DESC LIMIT :most;

-- name: rows
SELECT id, event_type, event_version, occurred_at, source, target, content_class, workspace_id, payload,
  idempotency_key, trace_context, order_key,
  generation, channel, status, attempts, last_error, failure_history, first_failed_at, deleted_at, position
FROM core_outbox
WHERE id IN (SELECT value FROM json_each(:ids))
ORDER BY position DESC;

-- name: deliveries
SELECT handler_name, status, attempts, last_error, lease_owner FROM core_outbox_deliveries
WHERE event_id = :event_id ORDER BY handler_name;

-- name: ended
SELECT id FROM core_outbox AS o
WHERE status = 'failed' AND deleted_at IS NULL AND (:event_type = '' OR event_type = :event_type)
  AND (:generation < 0 OR generation = :generation) AND (:handler_name = '' OR EXISTS (
    SELECT 1 FROM core_outbox_deliveries AS d
    WHERE d.event_id = o.id AND d.handler_name = :handler_name AND d.status = 'failed'))
ORDER BY position LIMIT :most;

-- name: replay
UPDATE core_outbox SET
  failure_history = json_insert(failure_history, '$[#]', json_object(
    'status', status, 'generation', generation, 'attempts', attempts, 'last_error', last_error,
    'first_failed_at', first_failed_at, 'replayed_by', :replayed_by, 'replayed_at', :now_ms,
    'deliveries', json((
      SELECT json_group_array(json_object('handler_name', d.handler_name, 'status', d.status,
                                          'attempts', d.attempts, 'last_error', d.last_error))
      FROM core_outbox_deliveries AS d WHERE d.event_id = core_outbox.id)))),
  status = 'pending', attempts = 0, last_error = NULL, first_failed_at = NULL, ended_at = NULL, is_fanned_out = 0,
  attempt = max(attempt, coalesce(
    (SELECT max(d.attempt) FROM core_outbox_deliveries AS d WHERE d.event_id = core_outbox.id), 0)),
  generation = :new_generation,
  channel = 'outbox_gen_' || :new_generation || CASE
    WHEN channel LIKE 'outbox_gen_' || generation || '_%' THEN substr(channel, length('outbox_gen_' || generation) + 1)
    ELSE '' END
WHERE id IN (SELECT value FROM json_each(:ids)) AND status IN ('delivered', 'failed') AND deleted_at IS NULL
RETURNING id;

-- name: hand_over
UPDATE core_outbox SET
  generation = :new_generation, is_fanned_out = 0, status = 'pending', ended_at = NULL,
  attempt = max(attempt, coalesce(
    (SELECT max(d.attempt) FROM core_outbox_deliveries AS d WHERE d.event_id = core_outbox.id), 0)),
  channel = CASE
    WHEN channel = 'outbox_default' THEN channel
    WHEN channel LIKE 'outbox_gen_' || generation || '_%'
      THEN 'outbox_gen_' || :new_generation || substr(channel, length('outbox_gen_' || generation) + 1)
    ELSE 'outbox_gen_' || :new_generation END
WHERE id IN (
  SELECT id FROM core_outbox
  WHERE generation = :generation AND (is_fanned_out = 0 OR is_fanned_out = 1 AND status IN ('pending', 'in_flight'))
  ORDER BY position LIMIT :most
)
RETURNING id;

-- name: delete_deliveries
DELETE FROM core_outbox_deliveries WHERE event_id IN (SELECT value FROM json_each(:ids));

-- name: announce
-- No notification: listeners see that the file has changed.
SELECT 1;

-- name: mark
UPDATE core_outbox SET deleted_at = :now_ms WHERE id IN (
  SELECT id FROM core_outbox
  WHERE created_at < :now_ms - :active_ms AND deleted_at IS NULL AND status IN ('delivered', 'failed')
  ORDER BY created_at LIMIT :most
)
RETURNING 1;

-- name: delete
DELETE FROM core_outbox WHERE id IN (
  SELECT id FROM core_outbox
  WHERE created_at < :now_ms - :active_ms AND deleted_at < :now_ms - :grace_ms AND status IN ('delivered', 'failed')
  ORDER BY created_at LIMIT :most
)
RETURNING id;

-- name: forget_handled
DELETE FROM core_event_handled WHERE rowid IN (
  SELECT rowid FROM core_event_handled WHERE handled_at < :now_ms - :handled_ms ORDER BY handled_at LIMIT :most
)
RETURNING 1;

-- name: stats
SELECT
  (SELECT count(*) FROM core_outbox WHERE is_fanned_out = 0)
    + (SELECT count(*) FROM core_outbox WHERE is_fanned_out = 1 AND status = 'pending'),
  (SELECT count(*) FROM core_outbox WHERE is_fanned_out = 1 AND status = 'in_flight'),
  (SELECT count(*) FROM core_outbox WHERE status = 'failed'),
  (SELECT coalesce(:now_ms - min(o.created_at), 0) FROM (
    SELECT created_at FROM core_outbox WHERE is_fanned_out = 0
    UNION ALL
    SELECT created_at FROM core_outbox WHERE is_fanned_out = 1 AND status IN ('pending', 'in_flight')
  ) AS o),
  (SELECT count(*) FROM core_outbox),
  (SELECT coalesce(avg(took), 0) FROM (
    SELECT took, row_number() OVER (ORDER BY took) AS place, count(*) OVER () AS among
    FROM (SELECT ended_at - created_at AS took FROM core_outbox WHERE status = 'delivered' LIMIT 10000))
   WHERE place = (among + 1) / 2),
  (SELECT coalesce(avg(took), 0) FROM (
    SELECT took, row_number() OVER (ORDER BY took) AS place, count(*) OVER () AS among
    FROM (SELECT ended_at - created_at AS took FROM core_outbox WHERE status = 'delivered' LIMIT 10000))
   WHERE place = (among * 99 + 99) / 100),
  0.0;

-- name: lacks_months
SELECT 0, 0;

-- name: is_there
SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = 'core_outbox';
