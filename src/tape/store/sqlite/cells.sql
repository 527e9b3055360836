-- name: clock
SELECT :now_ms;

-- name: read
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind
FROM json_each(:ids) AS asked
JOIN tape_cells AS c ON c.ledger = json_extract(asked.value, '$[0]') AND c.key = json_extract(asked.value, '$[1]');

-- name: due
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind
FROM tape_cells
WHERE ledger = :ledger AND status = :status AND due_at_ms <= :through AND (due_at_ms, key) > (:after_due, :after_key)
ORDER BY due_at_ms, key LIMIT :limit;

-- name: under
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind
FROM tape_cells
WHERE ledger = :ledger AND key > :low AND key < :high
ORDER BY key LIMIT :limit;

-- name: due_served
-- At most one page is read for each app and kind, so that cells of other apps cost nothing.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind
FROM json_each(:served) AS asked
JOIN tape_cells AS c ON c.ledger = :ledger AND c.key IN (
  SELECT key FROM tape_cells
  WHERE ledger = :ledger AND status = :status
    AND app = json_extract(asked.value, '$[0]') AND kind = json_extract(asked.value, '$[1]')
    AND due_at_ms <= :through AND (due_at_ms, key) > (:after_due, :after_key)
  ORDER BY due_at_ms, key LIMIT :limit
)
ORDER BY c.due_at_ms, c.key LIMIT :limit;
