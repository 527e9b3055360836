-- Divides a large outbox by time, once, and makes partitions for the months to come; answers which it has made.
-- What there was stays where it lies and becomes the first partition. Whatever fits no month is in the last one, so a
-- publish never fails for its time.
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

-- What a divided table cannot carry, each by its kind and name: what depends on the table itself, such as a view, a
-- function in SQL that is bound to it, a policy of another table or a use of its row type, would stay with the first
-- partition, a key without occurred_at cannot span partitions, and a publication that does not publish by the root would
-- publish rows under names that its subscribers do not have.
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

-- Makes the table a parent, with itself as its first partition and all that it carried: owner, rights, columns, checks,
-- foreign keys, indexes, triggers, row security, comments and publications. position stays an identity, so that whoever
-- may insert needs no right to its sequence.
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

-- Fastens to the parent what was fastened to the table, which is outbox_before by now.
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

-- A partition belongs to whoever owns the table, is stored like another one, and is used through the table alone: whatever
-- default privileges gave to others is taken back. Where updates are published a row is known by its key.
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

-- Gives exactly these rights, each from the role that gave it before if the caller may act as that role, else from the
-- owner. The list is in the order in which the rights were given, so that who passes one on has it by then.
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

-- The months after the last one there is, up to so many from now; one that the last partition has rows of is left in it.
-- It reads through the table: a worker may not read a partition by its name.
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
