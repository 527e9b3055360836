-- Gives new rows to all handlers they are for, in one call: a listener that was woken asks twice, not nine times.
-- Who deals shares the lock that who registers has alone, and each step sees what was true when it had it.
CREATE FUNCTION core.outbox_deal(p_generation bigint, p_most integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  v_ids uuid[];
  v_taken uuid[];
BEGIN
  PERFORM pg_advisory_xact_lock_shared(hashtext('core.outbox'));
  v_ids := ARRAY(
    SELECT id FROM core.outbox WHERE NOT is_dealt AND generation = p_generation AND deleted_at IS NULL
    ORDER BY position LIMIT p_most FOR UPDATE SKIP LOCKED
  );
  IF cardinality(v_ids) = 0 THEN
    RETURN;
  END IF;
  WITH dealt AS (
    INSERT INTO core.outbox_deliveries (event_id, handler_name, generation, position, order_key)
    SELECT o.id, h.handler_name, o.generation, o.position, o.order_key
    FROM core.outbox AS o JOIN core.event_handlers AS h
      ON core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target)
    WHERE o.id = ANY (v_ids) AND h.generation = p_generation
    ON CONFLICT DO NOTHING RETURNING event_id
  )
  SELECT coalesce(array_agg(DISTINCT event_id), '{}') INTO v_taken FROM dealt;
  -- A row that nobody takes stays pending, until somebody registers who does.
  UPDATE core.outbox SET
    is_dealt = true, ended_at = NULL, status = CASE WHEN id = ANY (v_taken) THEN 'in_flight' ELSE 'pending' END
  WHERE id = ANY (v_ids);
END $$;
