-- name: create_steps
CREATE TABLE IF NOT EXISTS core_tape_schema (
  line TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, applied_at INTEGER NOT NULL,
  PRIMARY KEY (line, number)
);

-- name: applied
SELECT number FROM core_tape_schema WHERE line = 'outbox';

-- name: record
INSERT INTO core_tape_schema (line, number, name, applied_at) VALUES ('outbox', :number, :name, :now_ms);
