-- name: lock
-- Taken by migrations only, so that two nodes that start at once apply a step once.
SELECT pg_advisory_xact_lock(7461706500000002);

-- name: has_steps
SELECT to_regclass('tape_schema') IS NOT NULL;

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
INSERT INTO tape_meta (only_row, epoch) VALUES (1, :now_ms) ON CONFLICT (only_row) DO NOTHING;

-- name: epoch
SELECT epoch FROM tape_meta;

-- name: durability
SELECT current_setting('fsync'), current_setting('synchronous_commit');
