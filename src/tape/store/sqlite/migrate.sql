-- name: has_journal
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tape_journal';

-- name: has_steps
SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'tape_schema';

-- name: create_steps
CREATE TABLE IF NOT EXISTS tape_schema (
  line TEXT NOT NULL, number INTEGER NOT NULL, name TEXT NOT NULL, applied_at INTEGER NOT NULL,
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
