-- name: clock
SELECT :now_ms;

-- name: read
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind, c.place
FROM json_each(:ids) AS asked
JOIN tape_cells AS c ON c.ledger = json_extract(asked.value, '$[0]') AND c.key = json_extract(asked.value, '$[1]');

-- name: due
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
FROM tape_cells
WHERE ledger = :ledger AND status = :status AND due_at_ms <= :through AND (due_at_ms, key) > (:after_due, :after_key)
ORDER BY due_at_ms, key LIMIT :limit;

-- name: under
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
FROM tape_cells
WHERE ledger = :ledger AND key > :low AND key < :high
ORDER BY key LIMIT :limit;

-- name: due_served
-- At most one page is read for each app and kind, so that cells of other apps cost nothing.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind, c.place
FROM json_each(:served) AS asked
JOIN tape_cells AS c ON c.ledger = :ledger AND c.key IN (
  SELECT key FROM tape_cells
  WHERE ledger = :ledger AND status = :status
    AND app = json_extract(asked.value, '$[0]') AND kind = json_extract(asked.value, '$[1]')
    AND due_at_ms <= :through AND (due_at_ms, key) > (:after_due, :after_key)
  ORDER BY due_at_ms, key LIMIT :limit
)
ORDER BY c.due_at_ms, c.key LIMIT :limit;

-- name: listed
-- A page ends with the cell that exceeds its byte limit; of those beyond it only the sizes are computed.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind, c.place
FROM (
  SELECT page.key, page.place, coalesce(sum(page.size) OVER before, 0) AS bytes_before
  FROM (
    SELECT key, place, 1024 + length(CAST(state_json AS BLOB)) AS size
    FROM tape_cells
    WHERE ledger = :ledger AND status = :status AND place > :low AND place < :high AND (:kind = '' OR kind = :kind)
    ORDER BY place LIMIT :limit
  ) AS page
  WINDOW before AS (ORDER BY page.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS placed CROSS JOIN tape_cells AS c ON c.ledger = :ledger AND c.key = placed.key
WHERE placed.bytes_before <= :max_bytes
ORDER BY placed.place LIMIT :limit;
