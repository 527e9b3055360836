-- name: read
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json
FROM json_each(:ids) AS asked
JOIN tape_cells AS c ON c.ledger = json_extract(asked.value, '$[0]') AND c.key = json_extract(asked.value, '$[1]');
