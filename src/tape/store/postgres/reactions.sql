-- name: lock_match_cursor
-- Registering and matching exclude each other, so that a task is inserted with the number of shards it is claimed with.
SELECT cursor FROM tape_match_cursor FOR UPDATE;

-- name: head
SELECT greatest(archived_through, coalesce((SELECT max(global_seq) FROM tape_journal), 0)) FROM tape_meta;

-- name: found
SELECT r.reaction_id, r.subject_pattern, r.name, r.predicate_cel, r.handler_kind, r.agent_app, r.publish_target,
       r.max_concurrency, r.rate_limit_per_s, r.debounce_ms, r.retry_max, r.retry_backoff_ms, r.dlq_after_n,
       r.num_shards, r.bootstrap_from_head, r.timeout_ms, r.created_at_ms, r.paused, r.deleted,
       coalesce(r.own_cursor, p.cursor), r.errors, r.last_error
FROM tape_reactions AS r CROSS JOIN tape_match_cursor AS p
WHERE r.reaction_id = :reaction_id;

-- name: listed
SELECT r.reaction_id, r.subject_pattern, r.name, r.predicate_cel, r.handler_kind, r.agent_app, r.publish_target,
       r.max_concurrency, r.rate_limit_per_s, r.debounce_ms, r.retry_max, r.retry_backoff_ms, r.dlq_after_n,
       r.num_shards, r.bootstrap_from_head, r.timeout_ms, r.created_at_ms, r.paused, r.deleted,
       coalesce(r.own_cursor, p.cursor), r.errors, r.last_error
FROM tape_reactions AS r CROSS JOIN tape_match_cursor AS p
WHERE r.deleted = 0 AND (:subject_pattern = '' OR r.subject_pattern = :subject_pattern)
  AND r.reaction_id > :after
ORDER BY r.reaction_id LIMIT :limit::bigint;

-- name: put
INSERT INTO tape_reactions (
  reaction_id, subject_pattern, name, predicate_cel, handler_kind, agent_app, publish_target, max_concurrency,
  rate_limit_per_s, debounce_ms, retry_max, retry_backoff_ms, dlq_after_n, num_shards, bootstrap_from_head,
  created_at_ms, own_cursor, timeout_ms)
VALUES (
  :reaction_id, :subject_pattern, :name, :predicate_cel, :handler_kind, :agent_app, :publish_target, :max_concurrency,
  :rate_limit_per_s, :debounce_ms, :retry_max, :retry_backoff_ms, :dlq_after_n, :num_shards, :bootstrap_from_head,
  tape_now_ms(), :own_cursor, :timeout_ms)
ON CONFLICT (reaction_id) DO UPDATE SET
  subject_pattern = excluded.subject_pattern, name = excluded.name, predicate_cel = excluded.predicate_cel,
  handler_kind = excluded.handler_kind, agent_app = excluded.agent_app, publish_target = excluded.publish_target,
  max_concurrency = excluded.max_concurrency, rate_limit_per_s = excluded.rate_limit_per_s,
  debounce_ms = excluded.debounce_ms, retry_max = excluded.retry_max, retry_backoff_ms = excluded.retry_backoff_ms,
  dlq_after_n = excluded.dlq_after_n, num_shards = excluded.num_shards,
  timeout_ms = excluded.timeout_ms, deleted = 0;

-- name: put_limit
INSERT INTO tape_limits (reaction_id) VALUES (:reaction_id) ON CONFLICT (reaction_id) DO NOTHING;

-- name: lock_tasks
-- Settling locks rows in an order of its own, so resharding locks the whole table to avoid a deadlock.
LOCK TABLE tape_tasks IN EXCLUSIVE MODE;

-- name: reshard
UPDATE tape_tasks SET shard = shard_hash % :num_shards
WHERE reaction_id = :reaction_id AND status IN (1, 2);

-- name: mark
UPDATE tape_reactions SET paused = :paused, deleted = :deleted WHERE reaction_id = :reaction_id;

-- name: match_cursor
SELECT version, cursor FROM tape_match_cursor;

-- name: states
SELECT reaction_id, own_cursor, state_json
FROM tape_reactions
WHERE state_version > :seen
ORDER BY state_version, reaction_id;

-- name: move_match_cursor
-- In a new epoch the entries of the page may be gone, and their positions may belong to other entries.
UPDATE tape_match_cursor SET version = version + 1, cursor = :cursor, matched_at = tape_now_ms()
WHERE version = :seen AND :epoch = (SELECT epoch FROM tape_meta)
RETURNING version, matched_at;

-- name: put_states
UPDATE tape_reactions AS r SET
  own_cursor = f.own_cursor, state_json = f.state_json, state_version = :version, paused = coalesce(f.paused, r.paused)
FROM json_to_recordset(:states::json) AS f(reaction_id text, own_cursor bigint, state_json text, paused text)
WHERE r.reaction_id = f.reaction_id;

-- name: add_predicate_errors
UPDATE tape_reactions AS r SET errors = r.errors + s.errors, last_error = s.last_error
FROM json_to_recordset(:errors::json) AS s(reaction_id text, errors bigint, last_error text)
WHERE r.reaction_id = s.reaction_id;
