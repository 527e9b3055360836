-- The outbox: published events, their handlers, and what was handled, in one schema.

-- A published row is in two indexes: each further one would slow down the business transaction. attempt is where the
-- fencing numbers of new deliveries continue after a replay.
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
CREATE INDEX outbox_delivered ON core.outbox (position) WHERE status = 'delivered';
CREATE INDEX outbox_age ON core.outbox (created_at) WHERE status IN ('delivered', 'failed');

-- One for each handler of a row; the status of the row summarises them. While a delivery is in flight, it has an owner
-- and next_attempt_at is the end of its lease; attempt is the fencing number.
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

-- Always empty. Fanning out locks it in a shared mode, changing handlers exclusively. An advisory lock would not do,
-- because any role that may connect can take it.
CREATE TABLE core.outbox_fan_out_lock ();

-- A handler has a row for each version of its definition that runs or ran recently: deployments register side by side,
-- and a handler takes a row of the outbox if one of its versions does.
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

-- Must not change: the publisher composes the channel, and the payload of a notification is the id of the row.
CREATE FUNCTION core.outbox_notify() RETURNS trigger LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM pg_notify(NEW.channel, NEW.id::text);
  RETURN NULL;
END $$;
CREATE TRIGGER outbox_notify AFTER INSERT ON core.outbox FOR EACH ROW EXECUTE FUNCTION core.outbox_notify();

-- Whether a handler takes a row. A row with the default channel is for every handler of its generation.
CREATE FUNCTION core.outbox_matches(
  h core.event_handlers, p_generation bigint, p_channel text, p_event_type text, p_target text
) RETURNS boolean LANGUAGE sql IMMUTABLE
  RETURN h.generation = p_generation AND p_channel IN (h.channel, 'outbox_default')
    AND (h.event_types IS NULL OR jsonb_exists(h.event_types, p_event_type))
    AND (p_target IS NULL OR p_target = h.target);

-- Restarts a row that has ended: its failures go to its history, its key stays, so a handler that succeeded before does
-- not run again. False if there is no such row or it has not ended.
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

-- The caller has locked the rows in the order of their ids, so that the summary is of the newest state.
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

-- All statements lock in one order, so that none deadlock: outbox_fan_out_lock, then rows, then deliveries, each by key.

-- Settles attempts and returns those that were the newest of their delivery. Keys that were handled outside a transaction
-- of ours are recorded first, in order. Here and in outbox_claim plans are kept and find every row by key, however many
-- rows have been delivered.
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

-- Partitions a large outbox by month, once, and creates the partitions of coming months; returns their names. The existing
-- table becomes the first partition. The default partition takes rows of all other months, so a publish never fails
-- because of its time.
CREATE FUNCTION core.outbox_divide(p_months integer) RETURNS SETOF text LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_start timestamptz;
  v_name text;
BEGIN
  LOCK TABLE core.outbox IN ACCESS EXCLUSIVE MODE;
  IF (SELECT relkind FROM pg_class WHERE oid = CAST('core.outbox' AS regclass)) = 'r' THEN
    PERFORM core.outbox_make_parent();
    RETURN NEXT 'outbox_before';
    RETURN NEXT 'outbox_later';
  END IF;
  FOR v_start IN SELECT core.outbox_missing_months(p_months) LOOP
    v_name := 'outbox_' || to_char(v_start AT TIME ZONE 'UTC', '"y"YYYY"m"MM');
    EXECUTE format('CREATE TABLE core.%I PARTITION OF core.outbox FOR VALUES FROM (%L) TO (%L)',
                   v_name, v_start, date_trunc('month', v_start + INTERVAL '32 days', 'UTC'));
    PERFORM core.outbox_finish_partition(v_name, 'outbox_later');
    RETURN NEXT v_name;
  END LOOP;
END $$;

-- What prevents partitioning, by kind and name: objects that depend on the table, such as a view, an SQL function, a policy
-- of another table or a use of its row type, would stay with the first partition; a key without occurred_at cannot span
-- partitions; a publication that does not publish by the root would use names that its subscribers do not have.
CREATE FUNCTION core.outbox_undividable() RETURNS SETOF text LANGUAGE sql STABLE
SET search_path = pg_catalog, pg_temp AS $$
  SELECT CASE WHEN c.oid = CAST('core.outbox' AS regclass) THEN format('rule %I', r.rulename)
              ELSE format('view %s', CAST(CAST(c.oid AS regclass) AS text)) END
  FROM pg_depend AS d JOIN pg_rewrite AS r ON r.oid = d.objid JOIN pg_class AS c ON c.oid = r.ev_class
  WHERE d.classid = CAST('pg_rewrite' AS regclass) AND d.refclassid = CAST('pg_class' AS regclass)
    AND d.refobjid = CAST('core.outbox' AS regclass)
  UNION
  SELECT pg_describe_object(d.classid, d.objid, d.objsubid)
  FROM pg_class AS c JOIN pg_type AS t ON t.oid = c.reltype JOIN pg_depend AS d
    ON (d.refclassid = CAST('pg_class' AS regclass) AND d.refobjid = c.oid
        AND d.classid IN (CAST('pg_proc' AS regclass), CAST('pg_policy' AS regclass)))
    OR (d.refclassid = CAST('pg_type' AS regclass) AND d.refobjid IN (t.oid, t.typarray) AND d.deptype = 'n')
  WHERE c.oid = CAST('core.outbox' AS regclass) AND NOT EXISTS (
    SELECT FROM pg_policy AS p
    WHERE d.classid = CAST('pg_policy' AS regclass) AND p.oid = d.objid AND p.polrelid = c.oid)
  UNION
  SELECT format('child %s', CAST(CAST(inhrelid AS regclass) AS text)) FROM pg_inherits
  WHERE inhparent = CAST('core.outbox' AS regclass)
  UNION
  SELECT format('parent %s', CAST(CAST(inhparent AS regclass) AS text)) FROM pg_inherits
  WHERE inhrelid = CAST('core.outbox' AS regclass)
  UNION
  SELECT format('trigger %I for each row with a transition table', tgname) FROM pg_trigger
  WHERE tgrelid = CAST('core.outbox' AS regclass) AND tgtype & 1 = 1 AND (tgoldtable IS NOT NULL OR tgnewtable IS NOT NULL)
  UNION
  SELECT format('foreign key %I of %s', conname, CAST(CAST(conrelid AS regclass) AS text)) FROM pg_constraint
  WHERE contype = 'f' AND confrelid = CAST('core.outbox' AS regclass)
  UNION
  SELECT format('unique index %I', c.relname) FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
  WHERE i.indrelid = CAST('core.outbox' AS regclass) AND NOT i.indisprimary AND (i.indisunique OR i.indisexclusion)
  UNION
  SELECT format('publication %I without publish_via_partition_root', p.pubname)
  FROM pg_publication AS p JOIN pg_publication_tables AS t ON t.pubname = p.pubname
    JOIN pg_namespace AS n ON n.nspname = t.schemaname JOIN pg_class AS c ON c.relnamespace = n.oid
  WHERE c.relname = t.tablename AND c.oid = CAST('core.outbox' AS regclass) AND NOT p.pubviaroot
$$;

-- Replaces the table by a partitioned one with the old table as its first partition, and moves owner, rights, columns,
-- checks, foreign keys, indexes, triggers, row security, comments and publications. position stays an identity column, so
-- that a role that may insert needs no right to its sequence.
CREATE FUNCTION core.outbox_make_parent() RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_old pg_class;
  v_sequence regclass := pg_get_serial_sequence('core.outbox', 'position');
  v_sequence_rights aclitem[];
  v_last bigint;
  v_is_called boolean;
  v_start timestamptz;
  v_triggers jsonb;
  v_each record;
BEGIN
  SELECT * INTO v_old FROM pg_class WHERE oid = CAST('core.outbox' AS regclass);
  SELECT coalesce(relacl, acldefault('s', relowner)) INTO v_sequence_rights FROM pg_class WHERE oid = v_sequence;
  EXECUTE format('SELECT last_value, is_called FROM %s', v_sequence) INTO v_last, v_is_called;
  SELECT date_trunc('month', greatest(max(occurred_at), now()), 'UTC') + INTERVAL '1 month' INTO v_start
  FROM core.outbox;
  SELECT coalesce(jsonb_agg(jsonb_build_object(
    'name', tgname, 'definition', pg_get_triggerdef(oid), 'enabled', tgenabled) ORDER BY tgname), '[]') INTO v_triggers
  FROM pg_trigger WHERE tgrelid = v_old.oid AND NOT tgisinternal;

  ALTER TABLE core.outbox RENAME TO outbox_before;
  FOR v_each IN SELECT t ->> 'name' AS name FROM jsonb_array_elements(v_triggers) AS t LOOP
    EXECUTE format('DROP TRIGGER %I ON core.outbox_before', v_each.name);
  END LOOP;
  EXECUTE format('ALTER SEQUENCE %s RENAME TO outbox_before_position_seq', v_sequence);
  CREATE TABLE core.outbox (LIKE core.outbox_before INCLUDING ALL EXCLUDING INDEXES) PARTITION BY RANGE (occurred_at);
  ALTER TABLE core.outbox_before ALTER COLUMN position DROP IDENTITY;
  EXECUTE format('ALTER TABLE core.outbox OWNER TO %I', pg_get_userbyid(v_old.relowner));
  PERFORM setval(CAST(pg_get_serial_sequence('core.outbox', 'position') AS regclass), v_last, v_is_called);

  CREATE UNIQUE INDEX outbox_divided_id ON core.outbox (id, occurred_at);
  PERFORM core.outbox_carry_over(v_old);
  EXECUTE format('ALTER TABLE core.outbox ATTACH PARTITION core.outbox_before FOR VALUES FROM (MINVALUE) TO (%L)', v_start);
  CREATE TABLE core.outbox_later PARTITION OF core.outbox DEFAULT;
  PERFORM core.outbox_finish_partition('outbox_later', 'outbox_before');
  FOR v_each IN SELECT t ->> 'definition' AS definition, t ->> 'name' AS name, t ->> 'enabled' AS enabled
                FROM jsonb_array_elements(v_triggers) AS t LOOP
    EXECUTE v_each.definition;
    IF v_each.enabled <> 'O' THEN
      EXECUTE format('ALTER TABLE core.outbox %s TRIGGER %I',
        CASE v_each.enabled WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' ELSE 'ENABLE ALWAYS' END, v_each.name);
    END IF;
  END LOOP;
  PERFORM core.outbox_grant_again('TABLE', 'core.outbox', '', coalesce(v_old.relacl, acldefault('r', v_old.relowner)));
  PERFORM core.outbox_grant_again('SEQUENCE', pg_get_serial_sequence('core.outbox', 'position'), '', v_sequence_rights);
  FOR v_each IN SELECT attname, attacl FROM pg_attribute WHERE attrelid = v_old.oid AND attacl IS NOT NULL LOOP
    PERFORM core.outbox_grant_again('TABLE', 'core.outbox', format('(%I)', v_each.attname), v_each.attacl);
  END LOOP;
END $$;

-- Copies indexes, foreign keys, policies and publications of the old table, now outbox_before, to the parent.
CREATE FUNCTION core.outbox_carry_over(p_old pg_class) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_each record;
BEGIN
  IF p_old.reltablespace <> 0 THEN
    EXECUTE format('ALTER TABLE core.outbox SET TABLESPACE %I',
                   (SELECT spcname FROM pg_tablespace WHERE oid = p_old.reltablespace));
  END IF;
  FOR v_each IN SELECT c.relname, substring(pg_get_indexdef(c.oid) FROM ' USING .*') AS definition
                FROM pg_index AS i JOIN pg_class AS c ON c.oid = i.indexrelid
                WHERE i.indrelid = p_old.oid AND NOT i.indisunique ORDER BY c.relname LOOP
    EXECUTE format('CREATE INDEX %I ON core.outbox%s',
                   'outbox_divided_' || regexp_replace(v_each.relname, '^outbox_', ''), v_each.definition);
  END LOOP;
  FOR v_each IN SELECT conname, pg_get_constraintdef(oid) AS definition FROM pg_constraint
                WHERE conrelid = p_old.oid AND contype = 'f' ORDER BY conname LOOP
    EXECUTE format('ALTER TABLE core.outbox ADD CONSTRAINT %I %s', v_each.conname, v_each.definition);
  END LOOP;
  FOR v_each IN SELECT p.* FROM pg_policies AS p JOIN pg_namespace AS n ON n.nspname = p.schemaname
                WHERE n.oid = p_old.relnamespace AND p.tablename = 'outbox_before' ORDER BY p.policyname LOOP
    EXECUTE format('CREATE POLICY %I ON core.outbox AS %s FOR %s TO %s%s%s', v_each.policyname, v_each.permissive,
      v_each.cmd, (SELECT string_agg(CASE r WHEN 'public' THEN 'PUBLIC' ELSE quote_ident(r) END, ', ')
                   FROM unnest(v_each.roles) AS r),
      ' USING (' || v_each.qual || ')', ' WITH CHECK (' || v_each.with_check || ')');
  END LOOP;
  IF p_old.relrowsecurity THEN
    ALTER TABLE core.outbox ENABLE ROW LEVEL SECURITY;
  END IF;
  IF p_old.relforcerowsecurity THEN
    ALTER TABLE core.outbox FORCE ROW LEVEL SECURITY;
  END IF;
  IF p_old.relreplident IN ('f', 'n') THEN
    EXECUTE format('ALTER TABLE core.outbox REPLICA IDENTITY %s',
                   CASE p_old.relreplident WHEN 'f' THEN 'FULL' ELSE 'NOTHING' END);
  END IF;
  EXECUTE format('COMMENT ON TABLE core.outbox IS %L', obj_description(p_old.oid, 'pg_class'));
  FOR v_each IN SELECT t.pubname, to_jsonb(t) ->> 'rowfilter' AS row_filter,
                  CASE WHEN to_jsonb(r) ->> 'prattrs' IS NOT NULL THEN (
                    SELECT string_agg(quote_ident(a), ', ') FROM jsonb_array_elements_text(to_jsonb(t) -> 'attnames') AS a
                  ) END AS columns
                FROM pg_publication_rel AS r JOIN pg_publication AS p ON p.oid = r.prpubid
                  JOIN pg_namespace AS n ON n.oid = p_old.relnamespace
                  JOIN pg_publication_tables AS t
                    ON t.pubname = p.pubname AND t.schemaname = n.nspname AND t.tablename = 'outbox_before'
                WHERE r.prrelid = p_old.oid ORDER BY t.pubname LOOP
    EXECUTE format('ALTER PUBLICATION %I DROP TABLE core.outbox_before', v_each.pubname);
    EXECUTE format('ALTER PUBLICATION %I ADD TABLE core.outbox%s%s', v_each.pubname,
                   ' (' || v_each.columns || ')', ' WHERE (' || v_each.row_filter || ')');
  END LOOP;
END $$;

-- A partition has the owner of the table and the storage options of another partition, and is used through the table
-- alone: rights from default privileges are revoked. Its replica identity is the key.
CREATE FUNCTION core.outbox_finish_partition(p_name text, p_like text) RETURNS void LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_parent pg_class;
  v_partition pg_class;
  v_options text[];
  v_each record;
BEGIN
  SELECT * INTO v_parent FROM pg_class WHERE oid = CAST('core.outbox' AS regclass);
  SELECT reloptions INTO v_options FROM pg_class WHERE relname = p_like AND relnamespace = v_parent.relnamespace;
  EXECUTE format('ALTER TABLE core.%I OWNER TO %I', p_name, pg_get_userbyid(v_parent.relowner));
  IF v_options IS NOT NULL THEN
    EXECUTE format('ALTER TABLE core.%I SET (%s)', p_name, array_to_string(v_options, ', '));
  END IF;
  SELECT * INTO v_partition FROM pg_class WHERE relname = p_name AND relnamespace = v_parent.relnamespace;
  FOR v_each IN SELECT DISTINCT a.grantee FROM aclexplode(v_partition.relacl) AS a
                WHERE a.grantee <> v_parent.relowner LOOP
    EXECUTE format('REVOKE ALL ON core.%I FROM %s CASCADE', p_name,
      CASE v_each.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_each.grantee)) END);
  END LOOP;
  EXECUTE format('ALTER TABLE core.%I REPLICA IDENTITY %s', p_name, CASE v_parent.relreplident
    WHEN 'f' THEN 'FULL' WHEN 'n' THEN 'NOTHING' ELSE (
      SELECT format('USING INDEX %I', c.relname)
      FROM pg_inherits AS h JOIN pg_index AS i ON i.indexrelid = h.inhrelid JOIN pg_class AS c ON c.oid = h.inhrelid
      WHERE h.inhparent = CAST('core.outbox_divided_id' AS regclass) AND i.indrelid = v_partition.oid) END);
END $$;

-- Grants exactly these rights, each by the role that granted it before if the caller may act as that role, else by the
-- owner. The list is in the order of the grants, so that a role has a right before it passes it on.
CREATE FUNCTION core.outbox_grant_again(p_kind text, p_name text, p_columns text, p_rights aclitem[]) RETURNS void
LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_owner oid;
  v_role text := current_setting('role');
  v_each record;
BEGIN
  SELECT relowner INTO v_owner FROM pg_class WHERE oid = CAST(p_name AS regclass);
  FOR v_each IN SELECT DISTINCT a.grantee
                FROM pg_class AS c, aclexplode(coalesce(c.relacl, acldefault('r', c.relowner))) AS a
                WHERE c.oid = CAST(p_name AS regclass) AND p_columns = '' LOOP
    EXECUTE format('REVOKE ALL ON %s %s FROM %s CASCADE', p_kind, p_name,
      CASE v_each.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(v_each.grantee)) END);
  END LOOP;
  FOR v_each IN SELECT a.grantor, format('GRANT %s %s ON %s %s TO %s%s', a.privilege_type, p_columns, p_kind, p_name,
                  CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(a.grantee)) END,
                  CASE WHEN a.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END) AS statement
                FROM unnest(p_rights) WITH ORDINALITY AS u(item, place), aclexplode(ARRAY[u.item]) AS a
                ORDER BY u.place LOOP
    IF v_each.grantor = v_owner OR NOT pg_has_role(v_each.grantor, 'MEMBER') THEN
      EXECUTE v_each.statement;
    ELSE
      PERFORM set_config('role', pg_get_userbyid(v_each.grantor), true);
      EXECUTE v_each.statement;
      PERFORM set_config('role', v_role, true);
    END IF;
  END LOOP;
END $$;

-- The months without a partition up to p_months from now, without those that have rows in the default partition. It reads
-- through the table, because a worker may not read a partition by name.
CREATE FUNCTION core.outbox_missing_months(p_months integer) RETURNS SETOF timestamptz LANGUAGE plpgsql
SET search_path = pg_catalog, pg_temp AS $$
DECLARE
  v_month timestamptz;
  v_bound timestamptz;
BEGIN
  SELECT max(CAST(substring(pg_get_expr(c.relpartbound, c.oid) FROM 'TO \(''([^'']+)''\)') AS timestamptz)) INTO v_bound
  FROM pg_inherits AS i JOIN pg_class AS c ON c.oid = i.inhrelid
  WHERE i.inhparent = CAST('core.outbox' AS regclass);
  v_month := v_bound;
  WHILE v_month <= date_trunc('month', now(), 'UTC') + p_months * INTERVAL '1 month' LOOP
    IF NOT EXISTS (SELECT 1 FROM core.outbox AS o
                   WHERE o.tableoid = CAST('core.outbox_later' AS regclass) AND o.occurred_at >= v_month AND o.occurred_at < v_month + INTERVAL '1 month') THEN
      RETURN NEXT v_month;
    END IF;
    v_month := date_trunc('month', v_month + INTERVAL '32 days', 'UTC');
  END LOOP;
END $$;

-- Claiming is one call, and so one round trip between a commit and its handler.

-- Claims due deliveries, oldest first. Those of one order_key wait for all before them, also for rows that are not fanned
-- out yet. A version of a handler claims only what it takes itself. SKIP LOCKED is the correctness; the notification only
-- saves waiting.
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

-- Creates the deliveries of new rows for all handlers, also those of other processes, and returns them. The first
-- p_claimed that the caller's handlers take and that wait for no other are claimed as they are inserted. Registering
-- excludes fanning out, and each statement sees what was committed when it had the lock.
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
  -- A row without a handler stays pending until a handler that takes it is registered.
  UPDATE core.outbox SET
    is_fanned_out = true, ended_at = NULL,
    status = CASE WHEN id IN (SELECT t.event_id FROM unnest(v_fanned_out) AS t) THEN 'in_flight' ELSE 'pending' END
  WHERE id = ANY (v_ids);
  RETURN v_fanned_out;
END $$;

-- The attempts of a row for a handler: the most of all registered versions that take the row, NULL if none does. plpgsql
-- looks the table up by name; an SQL body would read only the first partition after partitioning.
CREATE FUNCTION core.outbox_attempts(p_handler text, p_event_id uuid) RETURNS integer LANGUAGE plpgsql STABLE
SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  RETURN (
    SELECT max(h.max_attempts) FROM core.outbox AS o JOIN core.event_handlers AS h
      ON h.handler_name = p_handler AND core.outbox_matches(h, o.generation, o.channel, o.event_type, o.target)
    WHERE o.id = p_event_id);
END $$;

-- Fails due deliveries that no version would claim again. v_least, the smallest number of attempts of all versions,
-- excludes nearly all of them without reading their rows. It skips locked rows, which are being settled.
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

-- Removes other versions of these handlers that have not run for long, and returns the names of their handlers. Fails
-- deliveries that no version takes any more: a dead letter can be replayed, while a delivery that is never claimed would
-- block its order_key and its row for ever.
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

-- Claims due deliveries, then fans out new rows. Events are read inside the function, because an outer snapshot may be
-- older than a row. OFFSET 0 keeps the planner from reading a whole table for a few rows.
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
