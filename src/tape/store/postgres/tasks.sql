-- name: insert
-- Reads the newest number of shards; changing it locks the match cursor, as this transaction does.
INSERT INTO tape_tasks (
  task_id, reaction_id, shard, source_run_id, source_global_seq, subject, payload_json, status, next_attempt_at_ms,
  last_error, created_at_ms, completed_at_ms, trace_id, span_id, shard_hash, source_seq, kind, type, schema_version,
  ts_ms, prev_value_json, first_at_ms, coalesced)
SELECT h.task_id, h.reaction_id,
       h.shard_hash % (SELECT r.num_shards FROM tape_reactions AS r WHERE r.reaction_id = h.reaction_id),
       h.run_id, h.global_seq, h.subject, h.payload_json, h.status, h.due_at_ms, h.last_error, :now,
       CASE WHEN h.status = 5 THEN :now::bigint ELSE 0 END, h.trace_id, h.span_id, h.shard_hash, h.seq, h.kind, h.type,
       h.schema_version, h.ts_ms, h.prev_value_json, h.first_at_ms, h.coalesced
FROM json_to_recordset(:matches::json) AS h(
       task_id text, reaction_id text, status smallint, due_at_ms bigint, last_error text, prev_value_json text,
       first_at_ms bigint, coalesced integer, global_seq bigint, seq bigint, run_id text, shard_hash bigint, kind text,
       type text, subject text, schema_version smallint, ts_ms bigint, payload_json text, trace_id text, span_id text)
ON CONFLICT (source_global_seq, reaction_id) DO NOTHING
RETURNING task_id;

-- name: lock_waiting
-- Waits for a task that is being claimed; after that it is no longer pending.
SELECT t.reaction_id, t.subject, t.task_id, t.first_at_ms
FROM json_to_recordset(:keys::json) AS k(reaction_id text, subject text)
CROSS JOIN LATERAL (
  SELECT w.reaction_id, w.subject, w.task_id, w.first_at_ms
  FROM tape_tasks AS w
  WHERE w.reaction_id = k.reaction_id AND w.subject = k.subject AND w.status = 1 AND w.first_at_ms > 0
  FOR UPDATE
) AS t;

-- name: coalesce
UPDATE tape_tasks AS t SET
  source_run_id = h.run_id, source_global_seq = h.global_seq, payload_json = h.payload_json, trace_id = h.trace_id,
  span_id = h.span_id, shard_hash = h.shard_hash, source_seq = h.seq, kind = h.kind, type = h.type,
  schema_version = h.schema_version, ts_ms = h.ts_ms, prev_value_json = h.prev_value_json,
  next_attempt_at_ms = h.due_at_ms, coalesced = t.coalesced + h.coalesced,
  shard = h.shard_hash % (SELECT r.num_shards FROM tape_reactions AS r WHERE r.reaction_id = h.reaction_id)
FROM json_to_recordset(:matches::json) AS h(
       task_id text, reaction_id text, due_at_ms bigint, prev_value_json text, coalesced integer, global_seq bigint,
       seq bigint, run_id text, shard_hash bigint, kind text, type text, schema_version smallint, ts_ms bigint,
       payload_json text, trace_id text, span_id text)
WHERE t.task_id = h.task_id;

-- name: end_pending
UPDATE tape_tasks SET status = 5, last_error = :last_error, completed_at_ms = tape_now_ms(), first_at_ms = 0
WHERE reaction_id = :reaction_id AND status = 1
RETURNING task_id;

-- name: waiting
-- The next task of each reaction, whether or not it is due.
SELECT r.reaction_id, w.next_attempt_at_ms, tape_now_ms()
FROM tape_reactions AS r CROSS JOIN LATERAL (
  SELECT t.next_attempt_at_ms
  FROM tape_tasks AS t
  WHERE t.reaction_id = r.reaction_id AND t.status IN (1, 2) AND (:shard < 0 OR t.shard = :shard)
  ORDER BY t.next_attempt_at_ms LIMIT 1
) AS w
WHERE r.deleted = 0 AND r.paused = ''
  AND ((:is_any AND r.handler_kind <> 1) OR r.reaction_id = ANY (ARRAY(SELECT json_array_elements_text(:reaction_ids::json))))
ORDER BY w.next_attempt_at_ms, r.reaction_id LIMIT :most;

-- name: exhausted
-- Claims whose lease has ended and that have no attempt left. A worker that waits for the run of an agent may come and
-- go, so that counts as no failed attempt.
SELECT 1
FROM tape_reactions AS r JOIN tape_tasks AS t ON t.reaction_id = r.reaction_id
WHERE t.status = 2 AND t.lease_expires_at_ms <= tape_now_ms()
  AND (r.deleted = 1 OR (r.handler_kind <> 1 AND t.attempts >= least(r.retry_max + 1, r.dlq_after_n)))
LIMIT 1;

-- name: expire
UPDATE tape_tasks AS t SET
  status = 5, completed_at_ms = tape_now_ms(),
  last_error = CASE WHEN r.deleted = 1 THEN 'deregistered'
                    ELSE 'the lease of attempt ' || t.attempts || ' ended without an answer' END
FROM tape_reactions AS r
WHERE r.reaction_id = t.reaction_id AND t.status = 2 AND t.lease_expires_at_ms <= tape_now_ms()
  AND (r.deleted = 1 OR (r.handler_kind <> 1 AND t.attempts >= least(r.retry_max + 1, r.dlq_after_n)))
RETURNING t.task_id, t.reaction_id, t.source_global_seq, t.subject, t.attempts, t.last_error;

-- name: lock_limits
-- Always in one order, so that two claims never deadlock.
SELECT l.reaction_id, l.next_start_at_us, r.max_concurrency, r.rate_limit_per_s
FROM tape_limits AS l JOIN tape_reactions AS r ON r.reaction_id = l.reaction_id
WHERE l.reaction_id = ANY (ARRAY(SELECT json_array_elements_text(:reaction_ids::json)))
  AND r.deleted = 0 AND r.paused = ''
ORDER BY l.reaction_id
FOR UPDATE OF l;

-- name: leases
-- A statement of its own after the locks, so that it counts everything that was claimed before.
SELECT a.reaction_id, tape_now_ms(), (
  SELECT count(*) FROM tape_tasks AS t
  WHERE t.reaction_id = a.reaction_id AND t.status = 2 AND t.lease_expires_at_ms > tape_now_ms()
) + (
  SELECT coalesce(sum(c.size - c.finished), 0) FROM tape_page_claims AS c
  WHERE c.reaction_id = a.reaction_id AND c.lease_expires_at_ms > tape_now_ms()
)
FROM json_array_elements_text(:reaction_ids::json) AS a(reaction_id);

-- name: claim
-- SKIP LOCKED is the correctness; the notification only saves waiting. ARRAY runs the subquery once; otherwise Postgres
-- might run it for every task and lock as many each time. Tasks beyond the byte limit of the answer are neither leased
-- nor counted; one that exceeds it alone is passed over. Their bytes are those of JSON, which may be twice as many
-- (sixfold in an error), and are counted only where that decides, because it reads the whole texts.
WITH due AS MATERIALIZED (
  SELECT t.task_id, t.next_attempt_at_ms, t.payload_json, t.prev_value_json, t.last_error, t.subject
  FROM tape_tasks AS t
  WHERE t.reaction_id = :reaction_id AND t.status IN (1, 2) AND t.next_attempt_at_ms <= :now::bigint
    AND (:shard < 0 OR t.shard = :shard)
    AND 1538 + octet_length(t.payload_json) + octet_length(t.prev_value_json) + octet_length(t.last_error)
          + octet_length(t.subject) <= :most_bytes::bigint
    AND (
      1538 + 2 * (octet_length(t.payload_json) + octet_length(t.prev_value_json) + octet_length(t.subject))
        + 6 * octet_length(t.last_error) <= :most_bytes::bigint
      OR 1536 + octet_length(to_json(t.payload_json || t.prev_value_json || t.last_error || t.subject)::text)
        <= :most_bytes::bigint
    )
  ORDER BY t.next_attempt_at_ms, t.task_id LIMIT :most FOR UPDATE SKIP LOCKED
), first AS (
  SELECT d.*, sum(1538 + octet_length(d.payload_json) + octet_length(d.prev_value_json) + octet_length(d.last_error)
           + octet_length(d.subject)) OVER place AS bytes
  FROM due AS d
  WINDOW place AS (ORDER BY d.next_attempt_at_ms, d.task_id)
), summed AS (
  SELECT f.task_id,
         sum(1536 + octet_length(to_json(f.payload_json || f.prev_value_json || f.last_error || f.subject)::text))
           OVER (ORDER BY f.next_attempt_at_ms, f.task_id) AS bytes
  FROM first AS f
  WHERE f.bytes <= :max_bytes::bigint
)
UPDATE tape_tasks SET
  status = 2, attempt = attempt + 1, attempts = attempts + 1, lease_owner = :owner, first_at_ms = 0,
  lease_expires_at_ms = :now + :lease_ms::bigint, next_attempt_at_ms = :now + :lease_ms::bigint
WHERE task_id = ANY (ARRAY(
  SELECT s.task_id FROM summed AS s WHERE s.bytes <= :max_bytes::bigint
))
RETURNING task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
          schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
          lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id;

-- name: smallest
-- 0 if a task fits whatever JSON makes of it.
SELECT min(CASE WHEN 1538 + 2 * (octet_length(t.payload_json) + octet_length(t.prev_value_json)
                       + octet_length(t.subject)) + 6 * octet_length(t.last_error) <= :max_bytes::bigint THEN 0
           ELSE 1536 + octet_length(to_json(t.payload_json || t.prev_value_json || t.last_error || t.subject)::text)
           END)
FROM json_array_elements_text(:reaction_ids::json) AS a(reaction_id)
JOIN tape_tasks AS t ON t.reaction_id = a.reaction_id
WHERE t.status IN (1, 2) AND t.next_attempt_at_ms <= tape_now_ms() AND (:shard < 0 OR t.shard = :shard);

-- name: move_limits
UPDATE tape_limits AS l SET next_start_at_us = m.next_start_at_us
FROM json_to_recordset(:limits::json) AS m(reaction_id text, next_start_at_us bigint)
WHERE l.reaction_id = m.reaction_id;

-- name: extend
-- An ended lease is not extended: another task may have its slot.
UPDATE tape_tasks AS t SET
  lease_expires_at_ms = tape_now_ms() + :lease_ms::bigint, next_attempt_at_ms = tape_now_ms() + :lease_ms::bigint
FROM json_to_recordset(:claims::json) AS c(task_id text, owner text, attempt bigint)
WHERE t.task_id = c.task_id AND t.lease_owner = c.owner AND t.status = 2 AND c.attempt IN (0, t.attempt)
  AND t.lease_expires_at_ms > tape_now_ms()
RETURNING t.task_id;

-- name: finish
UPDATE tape_tasks AS t SET status = 3, completed_at_ms = tape_now_ms(), lease_expires_at_ms = 0
FROM json_to_recordset(:claims::json) AS c(task_id text, owner text, attempt bigint)
WHERE t.task_id = c.task_id AND t.lease_owner = c.owner AND t.status = 2
  AND (t.attempt = c.attempt OR (c.attempt = 0 AND t.lease_expires_at_ms > tape_now_ms()))
RETURNING t.task_id;

-- name: lock_claims
SELECT t.task_id, t.reaction_id, t.source_global_seq, t.subject, t.attempts, r.retry_max, r.retry_backoff_ms,
       r.dlq_after_n, r.deleted, tape_now_ms()
FROM json_to_recordset(:claims::json) AS c(task_id text, owner text, attempt bigint)
JOIN tape_tasks AS t ON t.task_id = c.task_id
JOIN tape_reactions AS r ON r.reaction_id = t.reaction_id
WHERE t.lease_owner = c.owner AND t.status = 2
  AND (t.attempt = c.attempt OR (c.attempt = 0 AND t.lease_expires_at_ms > tape_now_ms()))
FOR UPDATE OF t;

-- name: put_settled
UPDATE tape_tasks AS t SET
  status = s.status, next_attempt_at_ms = s.next_attempt_at_ms, lease_expires_at_ms = 0,
  attempts = t.attempts - s.is_released::integer,
  last_error = CASE WHEN s.is_released THEN t.last_error ELSE s.last_error END,
  completed_at_ms = CASE WHEN s.status = 1 THEN 0 ELSE tape_now_ms() END
FROM json_to_recordset(:settled::json) AS s(
  task_id text, status smallint, next_attempt_at_ms bigint, last_error text, is_released boolean)
WHERE t.task_id = s.task_id;

-- name: found
SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM tape_tasks
WHERE task_id = :task_id
UNION ALL
SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM tape_page_claimed_tasks
WHERE task_prefix = split_part(:task_id, '.', 1) AND task_id = :task_id
LIMIT 1;

-- name: made_of
-- The task of the entry itself, else a debounced task of a newer entry of the same subject.
(SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM tape_tasks
WHERE reaction_id = :reaction_id AND source_global_seq >= :global_seq AND subject = :subject
  AND (source_global_seq = :global_seq OR coalesced > 0)
ORDER BY source_global_seq LIMIT 1)
UNION ALL
SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM tape_page_claimed_tasks
WHERE reaction_id = :reaction_id AND source_global_seq >= :global_seq AND subject = :subject
  AND (source_global_seq = :global_seq OR coalesced > 0)
ORDER BY source_global_seq LIMIT 1;

-- name: lock_match_cursor
-- Excludes matchers and changes of shards while tasks are inserted.
SELECT tape_now_ms() FROM tape_match_cursor FOR UPDATE;

-- name: is_removed
-- Locked, so that the reaction is not removed before its tasks exist and can end with it.
SELECT deleted FROM tape_reactions WHERE reaction_id = :reaction_id FOR SHARE;

-- name: present
-- A debounced task has the id of its first entry and the position of its newest.
SELECT t.task_id, t.source_global_seq
FROM json_to_recordset(:matches::json) AS h(task_id text, reaction_id text, global_seq bigint)
JOIN tape_tasks AS t ON t.task_id = h.task_id
UNION
SELECT t.task_id, t.source_global_seq
FROM json_to_recordset(:matches::json) AS h(task_id text, reaction_id text, global_seq bigint)
JOIN tape_tasks AS t ON t.source_global_seq = h.global_seq AND t.reaction_id = h.reaction_id
UNION
SELECT h.task_id, h.global_seq
FROM json_to_recordset(:matches::json) AS h(task_id text, reaction_id text, global_seq bigint)
JOIN tape_page_claims AS c ON c.reaction_id = h.reaction_id AND h.global_seq BETWEEN c.first_position AND c.last_position
  AND h.global_seq = ANY (c.positions);

-- name: newest
SELECT subject, max(source_global_seq)
FROM (
  SELECT subject, source_global_seq FROM tape_tasks
  WHERE reaction_id = :reaction_id AND subject = ANY (ARRAY(SELECT json_array_elements_text(:subjects::json)))
  UNION ALL
  SELECT subject, source_global_seq FROM tape_page_claimed_tasks
  WHERE reaction_id = :reaction_id AND subject = ANY (ARRAY(SELECT json_array_elements_text(:subjects::json)))
) AS t
GROUP BY subject;

-- name: listed
-- The run of an agent is listed as a task only if it could not be started. A page ends with the
-- task that reaches its byte limit; payloads beyond it are not read, because octet_length needs none.
WITH page AS (
  (SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
         schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
         lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
  FROM tape_tasks
  WHERE (:reaction_id = '' OR reaction_id = :reaction_id) AND (:status::int = 0 OR status = :status::int)
    AND (source_global_seq, reaction_id) < (:before_seq::bigint, :before_id::text)
    AND (status = 5 OR (
      SELECT r.handler_kind FROM tape_reactions AS r WHERE r.reaction_id = tape_tasks.reaction_id) IS DISTINCT FROM 1)
  ORDER BY source_global_seq DESC, reaction_id DESC LIMIT :limit)
  UNION ALL
  SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
         schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
         lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
  FROM tape_page_claimed_tasks
  WHERE (:reaction_id = '' OR reaction_id = :reaction_id) AND :status::int IN (0, 2)
    AND (source_global_seq, reaction_id) < (:before_seq::bigint, :before_id::text)
  ORDER BY source_global_seq DESC, reaction_id DESC LIMIT :limit
), summed AS (
  SELECT p.*, coalesce(sum(1538 + octet_length(p.subject) + octet_length(p.last_error)
           + CASE WHEN :is_bare THEN 0 ELSE octet_length(p.payload_json) + octet_length(p.prev_value_json) END
         ) OVER before, 0) AS bytes_before
  FROM page AS p
  WINDOW before AS (
    ORDER BY p.source_global_seq DESC, p.reaction_id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
)
SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, CASE WHEN :is_bare THEN '' ELSE payload_json END,
       CASE WHEN :is_bare THEN '' ELSE prev_value_json END, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM summed
WHERE bytes_before <= :max_bytes::bigint
ORDER BY source_global_seq DESC, reaction_id DESC LIMIT :limit;

-- name: dead
SELECT task_id FROM tape_tasks
WHERE status = 5 AND (:reaction_id = '' OR reaction_id = :reaction_id)
ORDER BY reaction_id, task_id LIMIT :limit;

-- name: replay
UPDATE tape_tasks SET
  status = 1, attempts = 0, next_attempt_at_ms = tape_now_ms(), completed_at_ms = 0, lease_owner = '',
  lease_expires_at_ms = 0
WHERE task_id = ANY (ARRAY(SELECT json_array_elements_text(:task_ids::json))) AND status = 5
RETURNING task_id, reaction_id, source_global_seq, subject, attempt, last_error;

-- name: forget
-- Reads the whole table: an index would cost every task more than this costs once a day.
DELETE FROM tape_tasks WHERE status = 3 AND completed_at_ms < :before_ms RETURNING task_id;

-- name: outcomes
-- Reads the whole table; for reports.
SELECT reaction_id, status, count(*), sum(attempts)::bigint, sum(coalesced)::bigint,
       avg(CASE WHEN status IN (3, 5) THEN completed_at_ms - created_at_ms ELSE 0 END)::bigint,
       max(CASE WHEN status IN (3, 5) THEN completed_at_ms - created_at_ms ELSE 0 END), min(created_at_ms)
FROM (
  SELECT reaction_id, status, attempts, coalesced, completed_at_ms, created_at_ms FROM tape_tasks
  UNION ALL
  SELECT reaction_id, status, attempts, coalesced, completed_at_ms, created_at_ms FROM tape_page_claimed_tasks
) AS t
GROUP BY reaction_id, status
ORDER BY reaction_id, status;
