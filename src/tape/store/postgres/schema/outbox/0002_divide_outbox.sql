-- Divides a large outbox by time, once, and makes partitions for the months to come; answers which it has made.
-- What there was stays where it lies and becomes the first partition. Whatever fits no month is in the last one, so a
-- publish never fails for its time.
CREATE FUNCTION core.outbox_divide(p_months integer) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE
  v_start timestamptz;
  v_name text;
BEGIN
  LOCK TABLE core.outbox IN ACCESS EXCLUSIVE MODE;
  IF (SELECT relkind FROM pg_class WHERE oid = CAST('core.outbox' AS regclass)) = 'r' THEN
    SELECT date_trunc('month', greatest(max(occurred_at), now()), 'UTC') + INTERVAL '1 month' INTO v_start
    FROM core.outbox;
    ALTER TABLE core.outbox RENAME TO outbox_before;
    DROP TRIGGER outbox_notify ON core.outbox_before;
    ALTER TABLE core.outbox_before ALTER COLUMN position DROP IDENTITY;
    CREATE SEQUENCE core.outbox_position AS bigint;
    PERFORM setval('core.outbox_position', coalesce((SELECT max(position) FROM core.outbox_before), 0) + 1, false);
    CREATE TABLE core.outbox (LIKE core.outbox_before INCLUDING DEFAULTS INCLUDING CONSTRAINTS)
      PARTITION BY RANGE (occurred_at);
    ALTER TABLE core.outbox ALTER COLUMN position SET DEFAULT nextval('core.outbox_position');
    ALTER TABLE core.outbox_before ALTER COLUMN position SET DEFAULT nextval('core.outbox_position');
    CREATE UNIQUE INDEX outbox_divided_id ON core.outbox (id, occurred_at);
    CREATE INDEX outbox_divided_undealt ON core.outbox (generation, position) WHERE NOT is_dealt;
    CREATE INDEX outbox_divided_undealt_keys ON core.outbox (generation, order_key, position)
      WHERE NOT is_dealt AND order_key IS NOT NULL;
    CREATE INDEX outbox_divided_open ON core.outbox (generation, position)
      WHERE is_dealt AND status IN ('pending', 'in_flight');
    CREATE INDEX outbox_divided_failed ON core.outbox (position) WHERE status = 'failed';
    CREATE INDEX outbox_divided_age ON core.outbox (created_at) WHERE status IN ('delivered', 'failed');
    CREATE TRIGGER outbox_notify AFTER INSERT ON core.outbox FOR EACH ROW EXECUTE FUNCTION core.outbox_notify();
    EXECUTE format('ALTER TABLE core.outbox ATTACH PARTITION core.outbox_before FOR VALUES FROM (MINVALUE) TO (%L)',
                   v_start);
    CREATE TABLE core.outbox_later PARTITION OF core.outbox DEFAULT
      WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);
    RETURN NEXT 'outbox_before';
    RETURN NEXT 'outbox_later';
  END IF;
  FOR v_start IN SELECT core.outbox_missing_months(p_months) LOOP
    v_name := 'outbox_' || to_char(v_start AT TIME ZONE 'UTC', '"y"YYYY"m"MM');
    EXECUTE format('CREATE TABLE core.%I PARTITION OF core.outbox FOR VALUES FROM (%L) TO (%L) '
                   'WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02)',
                   v_name, v_start, date_trunc('month', v_start + INTERVAL '32 days', 'UTC'));
    RETURN NEXT v_name;
  END LOOP;
END $$;

-- The months after the last one there is, up to so many from now; one that the last partition has rows of is left in it.
CREATE FUNCTION core.outbox_missing_months(p_months integer) RETURNS SETOF timestamptz LANGUAGE plpgsql AS $$
DECLARE
  v_month timestamptz;
  v_bound timestamptz;
BEGIN
  SELECT max(CAST(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)') AS timestamptz)) INTO v_bound
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
  WHERE i.inhparent = CAST('core.outbox' AS regclass);
  v_month := v_bound;
  WHILE v_month <= date_trunc('month', now(), 'UTC') + p_months * INTERVAL '1 month' LOOP
    IF NOT EXISTS (SELECT 1 FROM core.outbox_later AS o
                   WHERE o.occurred_at >= v_month AND o.occurred_at < v_month + INTERVAL '1 month') THEN
      RETURN NEXT v_month;
    END IF;
    v_month := date_trunc('month', v_month + INTERVAL '32 days', 'UTC');
  END LOOP;
END $$;
