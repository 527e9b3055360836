-- name: lock
LOCK TABLE core.tape_schema IN SHARE UPDATE EXCLUSIVE MODE;

-- name: has_schema
SELECT to_regnamespace(rtrim('core.', '.')) IS NOT NULL;

-- name: create_schema
-- A DO block, because a statement cannot take a name as a parameter.
DO $$ BEGIN EXECUTE format('CREATE SCHEMA %I', rtrim('core.', '.')); END $$;

-- name: has_steps
SELECT to_regclass('core.tape_schema') IS NOT NULL;

-- name: create_steps
CREATE TABLE core.tape_schema (
  line text NOT NULL, number integer NOT NULL, name text NOT NULL, applied_at bigint NOT NULL,
  PRIMARY KEY (line, number)
);

-- name: applied
SELECT number FROM core.tape_schema WHERE line = 'outbox';

-- name: record
INSERT INTO core.tape_schema (line, number, name, applied_at) VALUES ('outbox', :number, :name, :now_ms);
