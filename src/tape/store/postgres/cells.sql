-- name: clock
SELECT tape_now_ms();

-- name: read
-- The limit keeps it one look-up for each: as a plain join it would read the whole table.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json
FROM json_array_elements(:ids::json) AS asked, LATERAL (
  SELECT ledger, key, version, status, due_at_ms, state_json
  FROM tape_cells
  WHERE ledger = asked.value ->> 0 AND key = asked.value ->> 1
  LIMIT 1
) AS c;

-- name: due
-- The index ends with the time; cells of one time are few, and only they are sorted by key.
SELECT ledger, key, version, status, due_at_ms, state_json
FROM tape_cells
WHERE ledger = :ledger AND status = :status AND due_at_ms IS NOT NULL AND due_at_ms <= :through::bigint
  AND due_at_ms >= :after_due::bigint AND (due_at_ms > :after_due::bigint OR key > :after_key)
ORDER BY due_at_ms, key LIMIT :limit;

-- name: under
SELECT ledger, key, version, status, due_at_ms, state_json
FROM tape_cells
WHERE ledger = :ledger AND key > :low AND key < :high
ORDER BY key LIMIT :limit;
