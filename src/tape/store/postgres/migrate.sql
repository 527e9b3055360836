-- name: lock
-- Only migrations take it, so that two nodes that start at once apply a step once.
LOCK TABLE tape_schema IN SHARE UPDATE EXCLUSIVE MODE;

-- name: schema
-- The schema of the journal, or that in which to create it. It runs before the search path is pinned, so every name and
-- operator has its schema.
SELECT coalesce(
  (SELECT n.nspname FROM pg_catalog.pg_class AS c
   JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
   WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass('tape_schema')),
  pg_catalog.current_schema());

-- name: has_steps
SELECT EXISTS (
  SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relname = 'tape_schema' AND n.nspname = :schema);

-- name: foreign
-- The first object of a foreign role: the schema, or a relation or function in it with one of our names. Trusted are the
-- current role, the roles whose rights it inherits, the owner of the database and superusers. pg_has_role would not do,
-- because it is true of every role for a superuser.
WITH RECURSIVE ours (role) AS (
  SELECT oid FROM pg_roles WHERE rolname = current_user OR rolsuper OR rolname = 'pg_database_owner'
  UNION
  SELECT datdba FROM pg_database WHERE datname = current_database()
  UNION
  SELECT m.roleid FROM inherited AS m
), inherited (roleid) AS (
  SELECT oid FROM pg_roles WHERE rolname = current_user
  UNION
  SELECT m.roleid FROM pg_auth_members AS m JOIN inherited AS i ON i.roleid = m.member
  WHERE coalesce(to_jsonb(m) ->> 'inherit_option', 'true') = 'true'
), found (what, owner, is_foreign) AS (
  SELECT format('the schema %I', n.nspname), n.nspowner, false FROM pg_namespace AS n WHERE n.nspname = :schema
  UNION ALL
  SELECT format('%I.%I', n.nspname, c.relname), c.relowner, c.relname = 'tape_schema' AND c.relkind <> 'r'
  FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE n.nspname = :schema AND c.relname = ANY (CAST(:names AS text[]))
  UNION ALL
  SELECT format('the function %I.%I', n.nspname, p.proname), p.proowner, false
  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = p.pronamespace
  WHERE n.nspname = :schema AND p.proname = ANY (CAST(:names AS text[]))
)
SELECT f.what, CAST(pg_get_userbyid(f.owner) AS text), CAST(current_user AS text) FROM found AS f
WHERE f.is_foreign OR f.owner NOT IN (SELECT role FROM ours) ORDER BY f.what LIMIT 1;

-- name: create_steps
CREATE TABLE tape_schema (
  line text NOT NULL, number integer NOT NULL, name text NOT NULL, applied_at bigint NOT NULL,
  PRIMARY KEY (line, number)
);

-- name: applied
SELECT number FROM tape_schema WHERE line = 'journal';

-- name: record
INSERT INTO tape_schema (line, number, name, applied_at) VALUES ('journal', :number, :name, :now_ms);

-- name: begin_epoch
WITH made AS (
  INSERT INTO tape_meta (only_row, epoch, cluster, timeline)
  SELECT 1, :now_ms, cluster, timeline FROM tape_server()
  ON CONFLICT (only_row) DO NOTHING
  RETURNING epoch, cluster, timeline
)
INSERT INTO tape_terms (epoch, first_seq, cluster, timeline, began_at_ms)
SELECT epoch, 1, cluster, timeline, epoch FROM made;

-- name: epoch
SELECT epoch FROM tape_meta;

-- name: enter
SELECT tape_enter();

-- name: durability
SELECT pg_catalog.current_setting('fsync'), pg_catalog.current_setting('synchronous_commit');

-- name: path
SELECT pg_catalog.current_setting('search_path');

-- name: database
SELECT CAST(pg_catalog.current_database() AS pg_catalog.text);
