-- Claiming is one call, and so one way to the server and back, between a commit and its handler.

-- Deliveries that are due, oldest first. Those of one order_key wait for all before them, also for those that are not
-- dealt out yet. A version of a handler claims only what it takes: what is for another one waits for that. SKIP LOCKED is
-- the correctness; the notification only saves waiting.
CREATE FUNCTION core.outbox_claim_due(
  p_generation bigint, p_handlers text[], p_versions text[], p_owner text, p_until timestamptz, p_most integer
) RETURNS SETOF core.outbox_deliveries LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN QUERY
  WITH due AS (
    SELECT f.event_id, f.handler_name
    FROM core.event_handlers AS h CROSS JOIN LATERAL (
      SELECT d.event_id, d.handler_name FROM core.outbox_deliveries AS d
      WHERE d.handler_name = h.handler_name AND d.generation = p_generation AND d.status IN ('pending', 'in_flight')
        AND d.next_attempt_at <= now() AND d.attempts < h.max_attempts
        AND EXISTS (
          SELECT 1 FROM core.outbox AS o
          WHERE o.id = d.event_id AND core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target) OFFSET 0
        )
        AND NOT (h.is_ordered AND d.order_key IS NOT NULL AND (
          EXISTS (
            SELECT 1 FROM core.outbox_deliveries AS b
            WHERE b.handler_name = d.handler_name AND b.order_key = d.order_key AND b.position < d.position
              AND b.status IN ('pending', 'in_flight') AND b.generation = d.generation
          ) OR EXISTS (
            SELECT 1 FROM core.outbox AS u
            WHERE NOT u.is_fanned_out AND u.generation = d.generation AND u.order_key = d.order_key
              AND u.position < d.position
          )))
      ORDER BY d.next_attempt_at, d.position LIMIT p_most FOR UPDATE SKIP LOCKED
    ) AS f
    WHERE h.handler_name = ANY (p_handlers) AND h.generation = p_generation AND h.version = ANY (p_versions)
    LIMIT p_most
  )
  UPDATE core.outbox_deliveries AS d SET
    status = 'in_flight', attempt = d.attempt + 1, attempts = d.attempts + 1, lease_owner = p_owner,
    next_attempt_at = p_until
  FROM due WHERE d.event_id = due.event_id AND d.handler_name = due.handler_name
  RETURNING d.*;
END $$;

-- Gives new rows to all handlers they are for, also to those of other processes, and answers with their deliveries. The
-- first of those that are the caller's own, and wait for nobody, are claimed as they are written. Who deals shares the
-- lock that who registers has alone, and each step sees what was true when it had it.
CREATE FUNCTION core.outbox_fan_out(
  p_generation bigint, p_handlers text[], p_versions text[], p_owner text, p_until timestamptz, p_most integer,
  p_claimed integer
) RETURNS core.outbox_deliveries[] LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_ids uuid[];
  v_fanned_out core.outbox_deliveries[];
BEGIN
  LOCK TABLE core.outbox_fan_out_lock IN ROW EXCLUSIVE MODE;
  v_ids := ARRAY(
    SELECT id FROM core.outbox WHERE NOT is_fanned_out AND generation = p_generation AND deleted_at IS NULL
    ORDER BY position LIMIT p_most FOR UPDATE SKIP LOCKED
  );
  IF cardinality(v_ids) = 0 THEN
    RETURN '{}';
  END IF;
  WITH matched AS (
    SELECT o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt, bool_or(
      h.handler_name = ANY (p_handlers) AND h.version = ANY (p_versions)
      AND NOT (h.is_ordered AND o.order_key IS NOT NULL)) AS is_free
    FROM core.outbox AS o JOIN core.event_handlers AS h
      ON core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target)
    WHERE o.id = ANY (v_ids) AND h.generation = p_generation
    GROUP BY o.id, h.handler_name, o.generation, o.position, o.order_key, o.attempt
  ), numbered AS (
    SELECT m.*, m.is_free AND row_number() OVER (PARTITION BY m.is_free ORDER BY m.position) <= p_claimed AS is_ours
    FROM matched AS m
  ), created AS (
    INSERT INTO core.outbox_deliveries AS d (
      event_id, handler_name, generation, position, order_key, status, attempt, attempts, next_attempt_at, lease_owner
    )
    SELECT n.id, n.handler_name, n.generation, n.position, n.order_key,
      CASE WHEN n.is_ours THEN 'in_flight' ELSE 'pending' END, n.attempt + CAST(n.is_ours AS integer),
      CAST(n.is_ours AS integer), CASE WHEN n.is_ours THEN p_until ELSE now() END,
      CASE WHEN n.is_ours THEN p_owner END
    FROM numbered AS n
    ON CONFLICT DO NOTHING RETURNING d.*
  )
  SELECT coalesce(array_agg(created), '{}') INTO v_fanned_out FROM created;
  -- A row that nobody takes stays pending, until somebody registers who does.
  UPDATE core.outbox SET
    is_fanned_out = true, ended_at = NULL,
    status = CASE WHEN id IN (SELECT t.event_id FROM unnest(v_fanned_out) AS t) THEN 'in_flight' ELSE 'pending' END
  WHERE id = ANY (v_ids);
  RETURN v_fanned_out;
END $$;

-- How often a row is tried for a handler: as often as any registered version of it that takes the row does. None if no
-- version takes it. Bound to the table by name: a body of SQL would go on reading the first partition alone.
CREATE FUNCTION core.outbox_attempts(p_handler text, p_event_id uuid) RETURNS integer LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT max(h.max_attempts) FROM core.outbox AS o JOIN core.event_handlers AS h
      ON h.handler_name = p_handler AND core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target)
    WHERE o.id = p_event_id);
END $$;

-- Fails what is due and no version would claim again. No version tries less often than v_least: that alone keeps out
-- nearly all that waits, without a look at its row. It waits for no lock, and who holds one of a row settles it.
CREATE FUNCTION core.outbox_expire(p_generation bigint, p_handlers text[]) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_least integer := (
    SELECT min(h.max_attempts) FROM core.event_handlers AS h
    WHERE h.handler_name = ANY (p_handlers) AND h.generation = p_generation);
  v_found uuid[] := ARRAY(
    SELECT d.event_id FROM core.outbox_deliveries AS d
    WHERE d.handler_name = ANY (p_handlers) AND d.generation = p_generation AND d.status IN ('pending', 'in_flight')
      AND d.next_attempt_at <= now() AND d.attempts >= v_least
      AND d.attempts >= core.outbox_attempts(d.handler_name, d.event_id)
    LIMIT 1000);
  v_ids uuid[];
BEGIN
  IF cardinality(v_found) = 0 THEN
    RETURN;
  END IF;
  v_ids := ARRAY(SELECT id FROM core.outbox WHERE id = ANY (v_found) ORDER BY id FOR NO KEY UPDATE SKIP LOCKED);
  UPDATE core.outbox_deliveries AS d SET
    status = 'failed', lease_owner = NULL, ended_at = now(), first_failed_at = coalesce(d.first_failed_at, now()),
    last_error = CASE d.status WHEN 'pending' THEN 'no attempt is left: ' ELSE 'no attempt was answered: ' END
      || coalesce(d.last_error, 'whoever handled it was gone')
  FROM (
    SELECT e.event_id, e.handler_name FROM core.outbox_deliveries AS e
    WHERE e.event_id = ANY (v_ids) AND e.handler_name = ANY (p_handlers) AND e.status IN ('pending', 'in_flight')
      AND e.next_attempt_at <= now() AND e.attempts >= core.outbox_attempts(e.handler_name, e.event_id)
    FOR UPDATE SKIP LOCKED
  ) AS s
  WHERE d.event_id = s.event_id AND d.handler_name = s.handler_name;
  PERFORM core.outbox_summarise(v_ids);
END $$;

-- Removes versions of some handlers, but those given, that have not been seen for long, and answers whose they were. What
-- was dealt to those handlers and no version takes any more has failed: a dead letter can be replayed, while a delivery
-- that nobody claims would hold up its order_key and its row for ever.
CREATE FUNCTION core.outbox_retire_versions(
  p_generation bigint, p_handlers text[], p_versions text[], p_after_ms bigint
) RETURNS SETOF text LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_before timestamptz := now() - p_after_ms * INTERVAL '1 millisecond';
  v_ids uuid[];
BEGIN
  LOCK TABLE core.outbox_fan_out_lock IN EXCLUSIVE MODE;
  RETURN QUERY
  DELETE FROM core.event_handlers AS h
  WHERE h.generation = p_generation AND h.handler_name = ANY (p_handlers) AND h.version <> ALL (p_versions)
    AND h.seen_at < v_before
  RETURNING h.handler_name;
  v_ids := ARRAY(
    SELECT o.id FROM core.outbox AS o
    WHERE o.id IN (
      SELECT d.event_id FROM core.outbox_deliveries AS d JOIN core.outbox AS e ON e.id = d.event_id
      WHERE d.handler_name = ANY (p_handlers) AND d.generation = p_generation AND d.status IN ('pending', 'in_flight')
        AND d.next_attempt_at <= now() AND NOT EXISTS (
          SELECT 1 FROM core.event_handlers AS h
          WHERE h.handler_name = d.handler_name
            AND core.outbox_matches(h, e.generation, e.channel, e.event_type, e.target)))
    ORDER BY o.id FOR NO KEY UPDATE
  );
  PERFORM 1 FROM core.outbox_deliveries AS d WHERE d.event_id = ANY (v_ids) AND d.handler_name = ANY (p_handlers)
  ORDER BY d.event_id, d.handler_name FOR UPDATE;
  UPDATE core.outbox_deliveries AS d SET
    status = 'failed', lease_owner = NULL, ended_at = now(), first_failed_at = coalesce(d.first_failed_at, now()),
    last_error = 'no version of ' || d.handler_name || ' that runs takes ' || o.event_type
  FROM core.outbox AS o
  WHERE o.id = ANY (v_ids) AND d.event_id = o.id AND d.handler_name = ANY (p_handlers)
    AND d.status IN ('pending', 'in_flight') AND d.next_attempt_at <= now() AND NOT EXISTS (
      SELECT 1 FROM core.event_handlers AS h
      WHERE h.handler_name = d.handler_name
        AND core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target));
  PERFORM core.outbox_summarise(v_ids);
END $$;

-- First what is due, then what is new. What was claimed is read here and not outside, where an older snapshot may not
-- have a row that was committed meanwhile. OFFSET 0 keeps the planner from reading a whole table for a few rows.
CREATE FUNCTION core.outbox_claim(
  p_generation bigint, p_handlers text[], p_versions text[], p_owner text, p_lease_ms bigint, p_most integer,
  p_min_fan_out integer, p_expires boolean
) RETURNS TABLE (
  event_id text, handler_name text, attempt bigint, attempts integer, "position" bigint, id text, event_type text,
  event_version integer, occurred_at text, source text, target text, content_class text, workspace_id text, payload text,
  idempotency_key text, trace_context text, order_key text, is_handled boolean
) LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp
SET plan_cache_mode = force_generic_plan SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off
SET enable_mergejoin = off AS $$
#variable_conflict use_column
DECLARE
  v_until timestamptz := now() + p_lease_ms * INTERVAL '1 millisecond';
  v_free integer;
  v_fanned_out core.outbox_deliveries[];
  v_claimed core.outbox_deliveries[];
BEGIN
  LOCK TABLE core.outbox_fan_out_lock IN ROW EXCLUSIVE MODE;  -- before anything else is locked
  IF p_expires THEN
    PERFORM core.outbox_expire(p_generation, p_handlers);
  END IF;
  v_claimed := ARRAY(
    SELECT f FROM core.outbox_claim_due(p_generation, p_handlers, p_versions, p_owner, v_until, p_most) AS f
  );
  v_free := p_most - cardinality(v_claimed);
  IF v_free > 0 THEN
    v_fanned_out := core.outbox_fan_out(
      p_generation, p_handlers, p_versions, p_owner, v_until, greatest(v_free, p_min_fan_out), v_free
    );
    v_claimed := v_claimed || ARRAY(SELECT f FROM unnest(v_fanned_out) AS f WHERE f.status = 'in_flight');
    v_free := p_most - cardinality(v_claimed);
    IF v_free > 0 AND EXISTS (SELECT 1 FROM unnest(v_fanned_out) AS f
                              WHERE f.status = 'pending' AND f.handler_name = ANY (p_handlers)) THEN
      v_claimed := v_claimed || ARRAY(
        SELECT f FROM core.outbox_claim_due(p_generation, p_handlers, p_versions, p_owner, v_until, v_free) AS f
      );
    END IF;
  END IF;
  RETURN QUERY
  SELECT CAST(c.event_id AS text), c.handler_name, c.attempt, c.attempts, c.position, o.*, EXISTS (
    SELECT 1 FROM core.event_handled AS h
    WHERE h.handler_name = c.handler_name AND h.idempotency_key = o.idempotency_key OFFSET 0
  )
  FROM unnest(v_claimed) AS c CROSS JOIN LATERAL (
    SELECT CAST(e.id AS text), e.event_type, e.event_version, to_json(e.occurred_at) #>> '{}', e.source, e.target,
      e.content_class, CAST(e.workspace_id AS text), CAST(e.payload AS text), e.idempotency_key, e.trace_context,
      e.order_key
    FROM core.outbox AS e WHERE e.id = c.event_id OFFSET 0
  ) AS o;
END $$;
