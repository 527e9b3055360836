-- name: lock
-- Taken by migrations only, so that two nodes that start at once apply a step once.
LOCK TABLE tape_schema IN SHARE UPDATE EXCLUSIVE MODE;

-- name: schema
-- Where the journal lies, or else where it is to lie. It is asked before the search path is pinned, so every name and
-- operator in it has its schema.
SELECT coalesce(
  (SELECT n.nspname FROM pg_catalog.pg_class AS c
   JOIN pg_catalog.pg_namespace AS n ON n.oid OPERATOR(pg_catalog.=) c.relnamespace
   WHERE c.oid OPERATOR(pg_catalog.=) pg_catalog.to_regclass('tape_schema')),
  pg_catalog.current_schema());

-- name: has_steps
SELECT EXISTS (
  SELECT FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace
  WHERE c.relname = 'tape_schema' AND n.nspname = :schema);

-- name: create_steps
CREATE TABLE IF NOT EXISTS tape_schema (
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
