-- The parts of a list of runs: one of the first two, a condition for each filter, and one of the last seven. A condition
-- that is left out leaves the index to the others. The inner limit tells the planner how few rows a page has.

-- name: runs
SELECT page.* FROM (
SELECT r.run_id, r.label, r.started_at, r.app, r.user_id, r.session, r.opened_at, r.closed_at, r.reaped_at,
       tape_now_ms() - r.renewed_at, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM tape_runs AS r JOIN tape_heads AS h ON h.run_id = r.run_id
WHERE TRUE

-- name: open_runs
SELECT page.* FROM (
SELECT r.run_id, r.label, r.started_at, r.app, r.user_id, r.session, h.opened_at, r.closed_at, r.reaped_at,
       tape_now_ms() - r.renewed_at, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM tape_heads AS h JOIN tape_runs AS r ON r.run_id = h.run_id
WHERE left(h.run_id, 5) <> 'tape.'

-- name: of_users
AND left(r.run_id, 5) <> 'tape.'

-- name: of_users_unindexed
-- The same without the words of a partial index, so that a page of an app is never read along all runs.
AND NOT starts_with(r.run_id, 'tape.')

-- name: is_open
AND h.closed_seq IS NULL

-- name: is_closed
-- An append opens a run without changing its row, so the head decides.
AND r.closed_at IS NOT NULL AND h.closed_seq IS NOT NULL

-- name: is_stale
AND r.renewed_at < tape_now_ms() - :stale_ms::bigint

-- name: is_renewed
AND (r.renewed_at IS NULL OR r.renewed_at >= tape_now_ms() - :stale_ms::bigint)

-- name: of_app
AND r.app = :app

-- name: of_label
AND r.label = :label

-- name: of_parent
AND r.parent_run_id = :parent

-- name: with_prefix
AND starts_with(r.run_id, :prefix)

-- name: opened_between
AND r.opened_at >= :opened_after::bigint AND r.opened_at < :opened_before::bigint

-- name: closed_between
AND r.closed_at >= :closed_after::bigint AND r.closed_at < :closed_before::bigint

-- name: newest
AND (r.opened_at, r.run_id) < (:at::bigint, :id) AND r.opened_at >= :opened_after::bigint
ORDER BY r.opened_at DESC, r.run_id DESC LIMIT 1001) AS page LIMIT :limit::bigint

-- name: oldest
AND (r.opened_at, r.run_id) > (:at::bigint, :id) AND r.opened_at < :opened_before::bigint
ORDER BY r.opened_at, r.run_id LIMIT 1001) AS page LIMIT :limit::bigint

-- name: newest_open
AND (h.opened_at, h.run_id) < (:at::bigint, :id) AND h.opened_at >= :opened_after::bigint
ORDER BY h.opened_at DESC, h.run_id DESC LIMIT 1001) AS page LIMIT :limit::bigint

-- name: oldest_open
AND (h.opened_at, h.run_id) > (:at::bigint, :id) AND h.opened_at < :opened_before::bigint
ORDER BY h.opened_at, h.run_id LIMIT 1001) AS page LIMIT :limit::bigint

-- name: newest_closed
AND (r.closed_at, r.run_id) < (:at::bigint, :id) AND r.closed_at >= :closed_after::bigint
ORDER BY r.closed_at DESC, r.run_id DESC LIMIT 1001) AS page LIMIT :limit::bigint

-- name: oldest_closed
AND (r.closed_at, r.run_id) > (:at::bigint, :id) AND r.closed_at < :closed_before::bigint
ORDER BY r.closed_at, r.run_id LIMIT 1001) AS page LIMIT :limit::bigint

-- name: by_id
AND r.run_id >= :low_id AND r.run_id < :prefix_end
ORDER BY r.run_id LIMIT 1001) AS page LIMIT :limit::bigint
