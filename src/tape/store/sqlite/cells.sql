-- name: clock
SELECT :now_ms;

-- name: read
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json
FROM json_each(:ids) AS asked
JOIN tape_cells AS c ON c.ledger = json_extract(asked.value, '$[0]') AND c.key = json_extract(asked.value, '$[1]');

-- name: due
SELECT ledger, key, version, status, due_at_ms, state_json
FROM tape_cells
WHERE ledger = :ledger AND status = :status AND due_at_ms <= :through AND (due_at_ms, key) > (:after_due, :after_key)
ORDER BY due_at_ms, key LIMIT :limit;

-- name: under
SELECT ledger, key, version, status, due_at_ms, state_json
FROM tape_cells
WHERE ledger = :ledger AND key > :low AND key < :high
ORDER BY key LIMIT :limit;
