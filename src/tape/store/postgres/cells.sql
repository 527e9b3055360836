-- name: read
-- The limit keeps it one look-up for each: as a plain join it would read the whole table.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json
FROM json_array_elements(:ids::json) AS asked, LATERAL (
  SELECT ledger, key, version, status, due_at_ms, state_json
  FROM tape_cells
  WHERE ledger = asked.value ->> 0 AND key = asked.value ->> 1
  LIMIT 1
) AS c;
