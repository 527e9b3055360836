-- name: read
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json
FROM json_array_elements(:ids::json) AS asked
JOIN tape_cells AS c ON c.ledger = asked.value ->> 0 AND c.key = asked.value ->> 1;
