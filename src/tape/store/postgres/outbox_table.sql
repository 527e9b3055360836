-- name: page
-- Every row is in one of four partial indexes, so that a list needs none of a published row: new and open rows by
-- generation, delivered and failed ones. A page of each is merged.
WITH RECURSIVE new_rows (generation) AS (
  (SELECT generation FROM core.outbox WHERE NOT is_fanned_out ORDER BY generation LIMIT 1)
  UNION ALL
  SELECT (SELECT o.generation FROM core.outbox AS o WHERE NOT o.is_fanned_out AND o.generation > n.generation
          ORDER BY o.generation LIMIT 1)
  FROM new_rows AS n WHERE n.generation IS NOT NULL
), open_rows (generation) AS (
  (SELECT generation FROM core.outbox WHERE is_fanned_out AND status IN ('pending', 'in_flight')
   ORDER BY generation LIMIT 1)
  UNION ALL
  SELECT (SELECT o.generation FROM core.outbox AS o
          WHERE o.is_fanned_out AND o.status IN ('pending', 'in_flight') AND o.generation > n.generation
          ORDER BY o.generation LIMIT 1)
  FROM open_rows AS n WHERE n.generation IS NOT NULL
), page AS (
  SELECT found.id, found.position FROM (
    SELECT o.id, o.position FROM new_rows AS n, LATERAL (
      SELECT o.id, o.position FROM core.outbox AS o
      WHERE NOT o.is_fanned_out AND o.generation = n.generation AND o.status IN ('pending', 'in_flight')
        AND (:status = '' OR o.status = :status) AND (:event_type = '' OR o.event_type = :event_type) AND o.position < CAST(:before AS bigint)
      ORDER BY o.position DESC LIMIT :most) AS o
    WHERE :status IN ('', 'pending', 'in_flight')
      AND (CAST(:generation AS bigint) < 0 OR n.generation = :generation)
    UNION ALL
    SELECT o.id, o.position FROM open_rows AS n, LATERAL (
      SELECT o.id, o.position FROM core.outbox AS o
      WHERE o.is_fanned_out AND o.generation = n.generation AND o.status IN ('pending', 'in_flight')
        AND (:status = '' OR o.status = :status) AND (:event_type = '' OR o.event_type = :event_type) AND o.position < CAST(:before AS bigint)
      ORDER BY o.position DESC LIMIT :most) AS o
    WHERE :status IN ('', 'pending', 'in_flight')
      AND (CAST(:generation AS bigint) < 0 OR n.generation = :generation)
    UNION ALL
    (SELECT o.id, o.position FROM core.outbox AS o
     WHERE o.status = 'delivered' AND :status IN ('', 'delivered') AND (:event_type = '' OR o.event_type = :event_type) AND o.position < CAST(:before AS bigint)
       AND (CAST(:generation AS bigint) < 0 OR o.generation = :generation)
     ORDER BY o.position DESC LIMIT :most)
    UNION ALL
    (SELECT o.id, o.position FROM core.outbox AS o
     WHERE o.status = 'failed' AND :status IN ('', 'failed') AND (:event_type = '' OR o.event_type = :event_type) AND o.position < CAST(:before AS bigint)
       AND (CAST(:generation AS bigint) < 0 OR o.generation = :generation)
     ORDER BY o.position DESC LIMIT :most)
  ) AS found
  ORDER BY found.position DESC LIMIT :most
)
SELECT CAST(id AS text) FROM page ORDER BY position DESC;

-- name: rows
SELECT CAST(id AS text), event_type, event_version, to_json(occurred_at) #>> '{}', source, target, content_class,
  CAST(workspace_id AS text), CAST(payload AS text), idempotency_key, trace_context, order_key,
  generation, channel, status, attempts, last_error, CAST(failure_history AS text),
  CAST(extract(epoch FROM first_failed_at) * 1000 AS bigint), CAST(extract(epoch FROM deleted_at) * 1000 AS bigint),
  position
FROM core.outbox
WHERE id = ANY (ARRAY(SELECT CAST(i AS uuid) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS i))
ORDER BY position DESC;

-- name: deliveries
SELECT handler_name, status, attempts, last_error, lease_owner FROM core.outbox_deliveries
WHERE event_id = CAST(CAST(:event_id AS text) AS uuid) ORDER BY handler_name;

-- name: ended
SELECT CAST(id AS text) FROM core.outbox
WHERE status = 'failed' AND deleted_at IS NULL AND (:event_type = '' OR event_type = :event_type)
  AND (CAST(:generation AS bigint) < 0 OR generation = :generation) AND (:handler_name = '' OR EXISTS (
    SELECT 1 FROM core.outbox_deliveries AS d
    WHERE d.event_id = id AND d.handler_name = :handler_name AND d.status = 'failed'))
ORDER BY position LIMIT :most;

-- name: replay
SELECT CAST(i AS text) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS i
WHERE core.outbox_replay(CAST(i AS uuid), :new_generation, :replayed_by);

-- name: hand_over
-- Unfinished rows of a retired generation, which handlers of the new one take.
UPDATE core.outbox AS o SET
  generation = CAST(:new_generation AS bigint), is_fanned_out = false, status = 'pending', ended_at = NULL,
  attempt = greatest(o.attempt, (SELECT max(d.attempt) FROM core.outbox_deliveries AS d WHERE d.event_id = o.id)),
  channel = CASE WHEN channel ~ '^outbox_gen_[0-9]+'
                 THEN regexp_replace(channel, '^outbox_gen_[0-9]+', 'outbox_gen_' || CAST(:new_generation AS bigint))
                 ELSE channel END
WHERE id = ANY (ARRAY(
  SELECT id FROM core.outbox
  WHERE generation = :generation AND (NOT is_fanned_out OR is_fanned_out AND status IN ('pending', 'in_flight'))
    AND id = ANY (ARRAY(
      SELECT id FROM core.outbox
      WHERE generation = :generation AND (NOT is_fanned_out OR is_fanned_out AND status IN ('pending', 'in_flight'))
      ORDER BY position LIMIT :most
    ))
  ORDER BY id FOR UPDATE
))
RETURNING CAST(id AS text);

-- name: delete_deliveries
WITH found AS (
  SELECT d.event_id, d.handler_name FROM core.outbox_deliveries AS d
  WHERE d.event_id = ANY (ARRAY(SELECT CAST(i AS uuid) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS i))
  ORDER BY d.event_id, d.handler_name FOR UPDATE
)
DELETE FROM core.outbox_deliveries AS d USING found
WHERE d.event_id = found.event_id AND d.handler_name = found.handler_name;

-- name: announce
SELECT pg_notify(channel, CAST(max(CAST(id AS text)) AS text)) FROM core.outbox
WHERE id IN (SELECT CAST(i AS uuid) FROM jsonb_array_elements_text(CAST(:ids AS jsonb)) AS i) GROUP BY channel;

-- name: mark
-- Ended rows only: a row that was never handled is never deleted by age.
UPDATE core.outbox SET deleted_at = now() WHERE id = ANY (ARRAY(
  SELECT id FROM core.outbox
  WHERE created_at < now() - :active_ms * INTERVAL '1 millisecond' AND deleted_at IS NULL
    AND status IN ('delivered', 'failed')
  ORDER BY created_at LIMIT :most FOR UPDATE SKIP LOCKED
))
RETURNING 1;

-- name: delete
DELETE FROM core.outbox WHERE id = ANY (ARRAY(
  SELECT id FROM core.outbox
  WHERE created_at < now() - :active_ms * INTERVAL '1 millisecond' AND status IN ('delivered', 'failed')
    AND deleted_at < now() - :grace_ms * INTERVAL '1 millisecond'
  ORDER BY created_at LIMIT :most FOR UPDATE SKIP LOCKED
))
RETURNING CAST(id AS text);

-- name: forget_handled
DELETE FROM core.event_handled WHERE ctid IN (
  SELECT ctid FROM core.event_handled
  WHERE handled_at < now() - :handled_ms * INTERVAL '1 millisecond' ORDER BY handled_at LIMIT :most
)
RETURNING 1;

-- name: stats
SELECT
  (SELECT count(*) FROM core.outbox WHERE NOT is_fanned_out)
    + (SELECT count(*) FROM core.outbox WHERE is_fanned_out AND status = 'pending'),
  (SELECT count(*) FROM core.outbox WHERE is_fanned_out AND status = 'in_flight'),
  (SELECT count(*) FROM core.outbox WHERE status = 'failed'),
  (SELECT CAST(coalesce(extract(epoch FROM now() - least(
     (SELECT min(created_at) FROM core.outbox WHERE NOT is_fanned_out),
     (SELECT min(created_at) FROM core.outbox WHERE is_fanned_out AND status IN ('pending', 'in_flight'))
   )) * 1000, 0) AS bigint)),
  (SELECT CAST(coalesce(sum(greatest(reltuples, 0)), 0) AS bigint) FROM pg_class
   WHERE oid = CAST('core.outbox' AS regclass)
      OR oid IN (SELECT inhrelid FROM pg_inherits WHERE inhparent = CAST('core.outbox' AS regclass))),
  (SELECT CAST(coalesce(percentile_cont(0.5) WITHIN GROUP (ORDER BY extract(epoch FROM a.took)) * 1000, 0) AS float8)
   FROM (SELECT ended_at - created_at AS took FROM core.outbox
         WHERE created_at > now() - INTERVAL '1 hour' AND status = 'delivered' LIMIT 10000) AS a),
  (SELECT CAST(coalesce(percentile_cont(0.99) WITHIN GROUP (ORDER BY extract(epoch FROM a.took)) * 1000, 0) AS float8)
   FROM (SELECT ended_at - created_at AS took FROM core.outbox
         WHERE created_at > now() - INTERVAL '1 hour' AND status = 'delivered' LIMIT 10000) AS a),
  pg_notification_queue_usage();

-- name: divide
SELECT f FROM core.outbox_divide(CAST(:months AS integer)) AS f;

-- name: undividable
SELECT f FROM core.outbox_undividable() AS f
WHERE (SELECT relkind FROM pg_class WHERE oid = CAST('core.outbox' AS regclass)) = 'r' ORDER BY f;

-- name: lacks_months
-- Whether a month lacks its partition, and whether this role may create one. Checked first, because creating a partition
-- locks the whole table against publishers.
SELECT CASE WHEN relkind = 'p' THEN EXISTS (SELECT 1 FROM core.outbox_missing_months(CAST(:months AS integer)))
            ELSE false END,
  pg_has_role(relowner, 'USAGE') AND has_schema_privilege(relnamespace, 'CREATE')
FROM pg_class WHERE oid = CAST('core.outbox' AS regclass);

-- name: is_there
SELECT to_regclass('core.outbox') IS NOT NULL;
