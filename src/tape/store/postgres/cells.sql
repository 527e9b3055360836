-- name: clock
SELECT tape_now_ms();

-- name: read
-- LIMIT makes it one index look-up for each id; a plain join would read the whole table.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind, c.place
FROM json_array_elements(:ids::json) AS asked, LATERAL (
  SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
  FROM tape_cells
  WHERE ledger = asked.value ->> 0 AND key = asked.value ->> 1
  LIMIT 1
) AS c;

-- name: due
-- The index ends with the time, so only the few cells of one time are sorted by key.
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
FROM tape_cells
WHERE ledger = :ledger AND status = :status AND due_at_ms IS NOT NULL AND due_at_ms <= :through::bigint
  AND due_at_ms >= :after_due::bigint AND (due_at_ms > :after_due::bigint OR key > :after_key)
ORDER BY due_at_ms, key LIMIT :limit;

-- name: under
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
FROM tape_cells
WHERE ledger = :ledger AND key > :low AND key < :high
ORDER BY key LIMIT :limit;

-- name: due_served
-- At most one page is read for each app and kind, so that cells of other apps cost nothing.
SELECT c.ledger, c.key, c.version, c.status, c.due_at_ms, c.state_json, c.app, c.kind, c.place
FROM json_array_elements(:served::json) AS asked, LATERAL (
  SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
  FROM tape_cells
  WHERE ledger = :ledger AND status = :status AND app = asked.value ->> 0 AND kind = asked.value ->> 1
    AND due_at_ms IS NOT NULL AND due_at_ms <= :through::bigint
    AND due_at_ms >= :after_due::bigint AND (due_at_ms > :after_due::bigint OR key > :after_key)
  ORDER BY due_at_ms, key LIMIT :limit
) AS c
ORDER BY c.due_at_ms, c.key LIMIT :limit;

-- name: listed
-- A page ends with the cell that exceeds its byte limit; states beyond it are not read, because octet_length needs none.
SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
FROM (
  SELECT page.*, coalesce(sum(1024 + octet_length(page.state_json)) OVER before, 0) AS bytes_before
  FROM (
    SELECT ledger, key, version, status, due_at_ms, state_json, app, kind, place
    FROM tape_cells
    WHERE ledger = :ledger AND status = :status AND place > :low AND place < :high AND (:kind = '' OR kind = :kind)
    ORDER BY place LIMIT :limit
  ) AS page
  WINDOW before AS (ORDER BY page.place ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS placed
WHERE bytes_before <= :max_bytes::bigint
ORDER BY place LIMIT :limit;
