-- name: clock
SELECT tape_now_ms();

-- name: read
-- The limit keeps it one look-up for each: as a plain join it would read the whole table.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind
FROM json_array_elements(:ids::json) AS asked, LATERAL (
  SELECT ledger, key, version, status, due_at_ms, state_json, app, kind
  FROM tape_cells
  WHERE ledger = asked.value ->> 0 AND key = asked.value ->> 1
  LIMIT 1
) AS c;

-- name: due
-- The index ends with the time; cells of one time are few, and only they are sorted by key.
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind
FROM tape_cells
WHERE ledger = :ledger AND status = :status AND due_at_ms IS NOT NULL AND due_at_ms <= :through::bigint
  AND due_at_ms >= :after_due::bigint AND (due_at_ms > :after_due::bigint OR key > :after_key)
ORDER BY due_at_ms, key LIMIT :limit;

-- name: under
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind
FROM tape_cells
WHERE ledger = :ledger AND key > :low AND key < :high
ORDER BY key LIMIT :limit;

-- name: due_served
-- For each app and kind no more than a page is read, so that what nobody here serves costs nothing.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind
FROM json_array_elements(:served::json) AS asked, LATERAL (
  SELECT ledger, key, version, status, due_at_ms, state_json, app, kind
  FROM tape_cells
  WHERE ledger = :ledger AND status = :status AND app = asked.value ->> 0 AND kind = asked.value ->> 1
    AND due_at_ms IS NOT NULL AND due_at_ms <= :through::bigint
    AND due_at_ms >= :after_due::bigint AND (due_at_ms > :after_due::bigint OR key > :after_key)
  ORDER BY due_at_ms, key LIMIT :limit
) AS c
ORDER BY c.due_at_ms, c.key LIMIT :limit;
