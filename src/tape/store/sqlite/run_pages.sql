-- The parts of a list of runs: one of the first two, a condition for each filter, and one of the last seven. A condition
-- that is left out leaves the index to the others; one with + is checked along the order and chooses no index.

-- name: runs
SELECT r.run_id, r.label, r.started_at, r.app, r.user_id, r.session, r.opened_at, r.closed_at, r.reaped_at,
       :now_ms - r.renewed_at, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM tape_runs AS r CROSS JOIN tape_heads AS h ON h.run_id = r.run_id
WHERE TRUE

-- name: open_runs
SELECT r.run_id, r.label, r.started_at, r.app, r.user_id, r.session, h.opened_at, r.closed_at, r.reaped_at,
       :now_ms - r.renewed_at, h.last_seq, h.closed_seq, h.floor, h.opened_seq, h.content_type, h.lineage_json
FROM tape_heads AS h CROSS JOIN tape_runs AS r ON r.run_id = h.run_id
WHERE substr(h.run_id, 1, 5) <> 'tape.'

-- name: of_users
AND substr(r.run_id, 1, 5) <> 'tape.'

-- name: of_users_unindexed
-- The same without the words of a partial index, so that a page of an app is never read along all runs.
AND r.run_id NOT GLOB 'tape.*'

-- name: is_open
AND h.closed_seq IS NULL

-- name: is_closed
-- An append opens a run without changing its row, so the head decides.
AND r.closed_at IS NOT NULL AND h.closed_seq IS NOT NULL

-- name: is_stale
AND r.renewed_at < :now_ms - :stale_ms

-- name: is_renewed
AND (r.renewed_at IS NULL OR r.renewed_at >= :now_ms - :stale_ms)

-- name: of_app
AND r.app = :app

-- name: of_label
AND r.label = :label

-- name: of_parent
AND r.parent_run_id = :parent

-- name: with_prefix
AND +r.run_id >= :prefix AND +r.run_id < :prefix_end

-- name: opened_between
AND +r.opened_at >= :opened_after AND +r.opened_at < :opened_before

-- name: closed_between
AND +r.closed_at >= :closed_after AND +r.closed_at < :closed_before

-- name: newest
AND (r.opened_at, r.run_id) < (:at, :id) AND r.opened_at >= :opened_after
ORDER BY r.opened_at DESC, r.run_id DESC LIMIT :limit

-- name: oldest
AND (r.opened_at, r.run_id) > (:at, :id) AND r.opened_at < :opened_before
ORDER BY r.opened_at, r.run_id LIMIT :limit

-- name: newest_open
AND (h.opened_at, h.run_id) < (:at, :id) AND h.opened_at >= :opened_after
ORDER BY h.opened_at DESC, h.run_id DESC LIMIT :limit

-- name: oldest_open
AND (h.opened_at, h.run_id) > (:at, :id) AND h.opened_at < :opened_before
ORDER BY h.opened_at, h.run_id LIMIT :limit

-- name: newest_closed
AND (r.closed_at, r.run_id) < (:at, :id) AND r.closed_at >= :closed_after
ORDER BY r.closed_at DESC, r.run_id DESC LIMIT :limit

-- name: oldest_closed
AND (r.closed_at, r.run_id) > (:at, :id) AND r.closed_at < :closed_before
ORDER BY r.closed_at, r.run_id LIMIT :limit

-- name: by_id
AND r.run_id >= :low_id AND r.run_id < :prefix_end
ORDER BY r.run_id LIMIT :limit
