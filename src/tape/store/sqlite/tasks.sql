-- name: insert
INSERT INTO tape_tasks (
  task_id, reaction_id, shard, source_run_id, source_global_seq, subject, payload_json, status, next_attempt_at_ms,
  last_error, created_at_ms, completed_at_ms, trace_id, span_id, shard_hash, source_seq, kind, type, schema_version,
  ts_ms, prev_value_json, first_at_ms, coalesced)
SELECT h.value ->> 'task_id', h.value ->> 'reaction_id',
       (h.value ->> 'shard_hash') % (
         SELECT r.num_shards FROM tape_reactions AS r WHERE r.reaction_id = h.value ->> 'reaction_id'),
       h.value ->> 'run_id', h.value ->> 'global_seq', h.value ->> 'subject', h.value ->> 'payload_json',
       h.value ->> 'status', h.value ->> 'due_at_ms', h.value ->> 'last_error', :now,
       CASE WHEN h.value ->> 'status' = 5 THEN :now ELSE 0 END, h.value ->> 'trace_id', h.value ->> 'span_id',
       h.value ->> 'shard_hash', h.value ->> 'seq', h.value ->> 'kind', h.value ->> 'type',
       h.value ->> 'schema_version', h.value ->> 'ts_ms', h.value ->> 'prev_value_json', h.value ->> 'first_at_ms',
       h.value ->> 'coalesced'
FROM json_each(:matches) AS h
WHERE true
ON CONFLICT (source_global_seq, reaction_id) DO NOTHING
RETURNING task_id;

-- name: lock_waiting
SELECT t.reaction_id, t.subject, t.task_id, t.first_at_ms
FROM json_each(:keys) AS k
CROSS JOIN tape_tasks AS t ON t.reaction_id = k.value ->> 'reaction_id' AND t.subject = k.value ->> 'subject'
WHERE t.status = 1 AND t.first_at_ms > 0;

-- name: coalesce
UPDATE tape_tasks SET
  source_run_id = h.value ->> 'run_id', source_global_seq = h.value ->> 'global_seq',
  payload_json = h.value ->> 'payload_json', trace_id = h.value ->> 'trace_id', span_id = h.value ->> 'span_id',
  shard_hash = h.value ->> 'shard_hash', source_seq = h.value ->> 'seq', kind = h.value ->> 'kind',
  type = h.value ->> 'type', schema_version = h.value ->> 'schema_version', ts_ms = h.value ->> 'ts_ms',
  prev_value_json = h.value ->> 'prev_value_json', next_attempt_at_ms = h.value ->> 'due_at_ms',
  coalesced = coalesced + (h.value ->> 'coalesced'),
  shard = (h.value ->> 'shard_hash') % (
         SELECT r.num_shards FROM tape_reactions AS r WHERE r.reaction_id = h.value ->> 'reaction_id')
FROM json_each(:matches) AS h
WHERE task_id = h.value ->> 'task_id';

-- name: end_pending
-- Both conditions, because SQLite does not infer that status = 1 implies the index's status IN (1, 2).
UPDATE tape_tasks SET status = 5, last_error = :last_error, completed_at_ms = :now_ms, first_at_ms = 0
WHERE reaction_id = :reaction_id AND status = 1 AND status IN (1, 2)
RETURNING task_id;

-- name: waiting
-- The next task of each reaction, whether or not it is due.
SELECT reaction_id, next_attempt_at_ms, :now_ms
FROM (
  SELECT r.reaction_id, (
    SELECT t.next_attempt_at_ms
    FROM tape_tasks AS t
    WHERE t.reaction_id = r.reaction_id AND t.status IN (1, 2) AND (:shard < 0 OR t.shard = :shard)
    ORDER BY t.next_attempt_at_ms LIMIT 1
  ) AS next_attempt_at_ms
  FROM tape_reactions AS r
  WHERE r.deleted = 0 AND r.paused = ''
    AND ((:is_any AND r.handler_kind <> 1) OR r.reaction_id IN (SELECT value FROM json_each(:reaction_ids)))
)
WHERE next_attempt_at_ms IS NOT NULL
ORDER BY next_attempt_at_ms, reaction_id LIMIT :most;

-- name: exhausted
-- Claims whose lease has ended and that have no attempt left. A worker that waits for the run of an agent may come and
-- go, so that counts as no failed attempt.
SELECT 1
FROM tape_reactions AS r JOIN tape_tasks AS t ON t.reaction_id = r.reaction_id
WHERE t.status = 2 AND t.lease_expires_at_ms <= :now_ms
  AND (r.deleted = 1 OR (r.handler_kind <> 1 AND t.attempts >= min(r.retry_max + 1, r.dlq_after_n)))
LIMIT 1;

-- name: expire
UPDATE tape_tasks SET
  status = 5, completed_at_ms = :now_ms,
  last_error = CASE WHEN r.deleted = 1 THEN 'deregistered'
                    ELSE 'the lease of attempt ' || attempts || ' ended without an answer' END
FROM tape_reactions AS r
WHERE r.reaction_id = tape_tasks.reaction_id AND status = 2 AND lease_expires_at_ms <= :now_ms
  AND (r.deleted = 1 OR (r.handler_kind <> 1 AND attempts >= min(r.retry_max + 1, r.dlq_after_n)))
RETURNING task_id, reaction_id, source_global_seq, subject, attempts, last_error;

-- name: lock_limits
SELECT l.reaction_id, l.next_start_at_us, r.max_concurrency, r.rate_limit_per_s
FROM tape_limits AS l JOIN tape_reactions AS r ON r.reaction_id = l.reaction_id
WHERE l.reaction_id IN (SELECT value FROM json_each(:reaction_ids)) AND r.deleted = 0 AND r.paused = ''
ORDER BY l.reaction_id;

-- name: leases
SELECT a.value, :now_ms, (
  SELECT count(*) FROM tape_tasks AS t
  WHERE t.reaction_id = a.value AND t.status = 2 AND t.lease_expires_at_ms > :now_ms
)
FROM json_each(:reaction_ids) AS a;

-- name: claim
-- Tasks beyond the byte limit of the answer are neither leased nor counted; one that exceeds it alone is passed over.
-- Their bytes are those of JSON, which may be twice as many (sixfold in an error), and are counted only where that
-- decides, because escaping costs more than reading.
UPDATE tape_tasks SET
  status = 2, attempt = attempt + 1, attempts = attempts + 1, lease_owner = :owner, first_at_ms = 0,
  lease_expires_at_ms = :now + :lease_ms, next_attempt_at_ms = :now + :lease_ms
WHERE task_id IN (
  SELECT placed.task_id FROM (
    SELECT page.task_id, sum(1536 + length(CAST(json_quote(
             t.payload_json || t.prev_value_json || t.last_error || t.subject) AS BLOB))) OVER place AS bytes
    FROM (
      SELECT p.task_id, sum(p.size) OVER (ORDER BY p.next_attempt_at_ms, p.task_id) AS bytes
      FROM (
        SELECT t.task_id, t.next_attempt_at_ms, 1538 + length(CAST(t.payload_json AS BLOB)) + length(t.subject)
                 + length(CAST(t.prev_value_json AS BLOB)) + length(CAST(t.last_error AS BLOB)) AS size
        FROM tape_tasks AS t
        WHERE t.reaction_id = :reaction_id AND t.status IN (1, 2) AND t.next_attempt_at_ms <= :now
          AND (:shard < 0 OR t.shard = :shard) AND size <= :most_bytes
          AND (2 * size + 4 * length(CAST(t.last_error AS BLOB)) <= :most_bytes
               OR 1536 + length(CAST(json_quote(
                 t.payload_json || t.prev_value_json || t.last_error || t.subject) AS BLOB)) <= :most_bytes)
        ORDER BY t.next_attempt_at_ms, t.task_id LIMIT :most
      ) AS p
    ) AS page CROSS JOIN tape_tasks AS t ON t.task_id = page.task_id
    WHERE page.bytes <= :max_bytes
    WINDOW place AS (ORDER BY t.next_attempt_at_ms, t.task_id)
  ) AS placed
  WHERE placed.bytes <= :max_bytes
)
RETURNING task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
          schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
          lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id;

-- name: smallest
-- 0 if a task fits whatever JSON makes of it.
SELECT min(CASE WHEN 1538 + 2 * (length(CAST(t.payload_json AS BLOB)) + length(CAST(t.prev_value_json AS BLOB))
                       + length(t.subject)) + 6 * length(CAST(t.last_error AS BLOB)) <= :max_bytes THEN 0
           ELSE 1536 + length(CAST(json_quote(
                  t.payload_json || t.prev_value_json || t.last_error || t.subject) AS BLOB)) END)
FROM tape_tasks AS t
WHERE t.reaction_id IN (SELECT value FROM json_each(:reaction_ids)) AND t.status IN (1, 2)
  AND t.next_attempt_at_ms <= :now_ms AND (:shard < 0 OR t.shard = :shard);

-- name: move_limits
UPDATE tape_limits SET next_start_at_us = m.value ->> 'next_start_at_us'
FROM json_each(:limits) AS m
WHERE reaction_id = m.value ->> 'reaction_id';

-- name: extend
-- An ended lease is not extended: another task may have its slot.
UPDATE tape_tasks SET lease_expires_at_ms = :now_ms + :lease_ms, next_attempt_at_ms = :now_ms + :lease_ms
FROM json_each(:claims) AS c
WHERE task_id = c.value ->> 'task_id' AND lease_owner = c.value ->> 'owner' AND status = 2
  AND c.value ->> 'attempt' IN (0, attempt) AND lease_expires_at_ms > :now_ms
RETURNING task_id;

-- name: finish
UPDATE tape_tasks SET status = 3, completed_at_ms = :now_ms, lease_expires_at_ms = 0
FROM json_each(:claims) AS c
WHERE task_id = c.value ->> 'task_id' AND lease_owner = c.value ->> 'owner' AND status = 2
  AND (attempt = c.value ->> 'attempt' OR (c.value ->> 'attempt' = 0 AND lease_expires_at_ms > :now_ms))
RETURNING task_id;

-- name: lock_claims
SELECT t.task_id, t.reaction_id, t.source_global_seq, t.subject, t.attempts, r.retry_max, r.retry_backoff_ms,
       r.dlq_after_n, r.deleted, :now_ms
FROM json_each(:claims) AS c
CROSS JOIN tape_tasks AS t ON t.task_id = c.value ->> 'task_id'
JOIN tape_reactions AS r ON r.reaction_id = t.reaction_id
WHERE t.lease_owner = c.value ->> 'owner' AND t.status = 2
  AND (t.attempt = c.value ->> 'attempt' OR (c.value ->> 'attempt' = 0 AND t.lease_expires_at_ms > :now_ms));

-- name: put_settled
UPDATE tape_tasks SET
  status = s.value ->> 'status', next_attempt_at_ms = s.value ->> 'next_attempt_at_ms',
  attempts = attempts - (s.value ->> 'is_released'),
  last_error = CASE WHEN s.value ->> 'is_released' THEN last_error ELSE s.value ->> 'last_error' END,
  lease_expires_at_ms = 0,
  completed_at_ms = CASE WHEN s.value ->> 'status' = 1 THEN 0 ELSE :now_ms END
FROM json_each(:settled) AS s
WHERE task_id = s.value ->> 'task_id';

-- name: found
SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM tape_tasks
WHERE task_id = :task_id;

-- name: made_of
-- The task of the entry itself, else a debounced task of a newer entry of the same subject.
SELECT task_id, reaction_id, shard, source_run_id, source_seq, source_global_seq, kind, type, subject,
       schema_version, ts_ms, payload_json, prev_value_json, status, attempt, attempts, next_attempt_at_ms,
       lease_owner, lease_expires_at_ms, last_error, coalesced, created_at_ms, completed_at_ms, trace_id, span_id
FROM tape_tasks
WHERE reaction_id = :reaction_id AND source_global_seq >= :global_seq AND subject = :subject
  AND (source_global_seq = :global_seq OR coalesced > 0)
ORDER BY source_global_seq LIMIT 1;

-- name: lock_match_cursor
-- Excludes matchers and changes of shards while tasks are inserted.
SELECT :now_ms FROM tape_match_cursor;

-- name: is_removed
SELECT deleted FROM tape_reactions WHERE reaction_id = :reaction_id;

-- name: present
-- A debounced task has the id of its first entry and the position of its newest.
SELECT t.task_id, t.source_global_seq
FROM json_each(:matches) AS h
CROSS JOIN tape_tasks AS t ON t.task_id = h.value ->> 'task_id'
UNION
SELECT t.task_id, t.source_global_seq
FROM json_each(:matches) AS h
CROSS JOIN tape_tasks AS t
  ON t.source_global_seq = h.value ->> 'global_seq' AND t.reaction_id = h.value ->> 'reaction_id';

-- name: newest
SELECT subject, max(source_global_seq)
FROM tape_tasks
WHERE reaction_id = :reaction_id AND subject IN (SELECT value FROM json_each(:subjects))
GROUP BY subject;

-- name: listed
-- The run of an agent is listed as a task only if it could not be started. A page ends with the
-- task that reaches its byte limit.
SELECT t.task_id, t.reaction_id, t.shard, t.source_run_id, t.source_seq, t.source_global_seq, t.kind, t.type, t.subject,
       t.schema_version, t.ts_ms, CASE WHEN :is_bare THEN '' ELSE t.payload_json END,
       CASE WHEN :is_bare THEN '' ELSE t.prev_value_json END, t.status, t.attempt, t.attempts, t.next_attempt_at_ms,
       t.lease_owner, t.lease_expires_at_ms, t.last_error, t.coalesced, t.created_at_ms, t.completed_at_ms, t.trace_id,
       t.span_id
FROM (
  SELECT page.task_id, coalesce(sum(page.size) OVER before, 0) AS bytes_before
  FROM (
    SELECT w.task_id, w.source_global_seq, w.reaction_id,
           1538 + length(w.subject) + length(CAST(w.last_error AS BLOB)) + CASE WHEN :is_bare THEN 0
             ELSE length(CAST(w.payload_json AS BLOB)) + length(CAST(w.prev_value_json AS BLOB)) END AS size
    FROM tape_tasks AS w
    WHERE (:reaction_id = '' OR w.reaction_id = :reaction_id) AND (:status = 0 OR w.status = :status)
      AND w.source_global_seq <= :before_seq
      AND (w.source_global_seq < :before_seq OR w.reaction_id < :before_id)
      AND (w.status = 5 OR (
        SELECT r.handler_kind FROM tape_reactions AS r WHERE r.reaction_id = w.reaction_id) IS NOT 1)
    ORDER BY w.source_global_seq DESC, w.reaction_id DESC LIMIT :limit
  ) AS page
  WINDOW before AS (
    ORDER BY page.source_global_seq DESC, page.reaction_id DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
  )
) AS placed CROSS JOIN tape_tasks AS t ON t.task_id = placed.task_id
WHERE placed.bytes_before <= :max_bytes
ORDER BY t.source_global_seq DESC, t.reaction_id DESC LIMIT :limit;

-- name: dead
SELECT task_id FROM tape_tasks
WHERE status = 5 AND (:reaction_id = '' OR reaction_id = :reaction_id)
ORDER BY reaction_id, task_id LIMIT :limit;

-- name: replay
UPDATE tape_tasks SET
  status = 1, attempts = 0, next_attempt_at_ms = :now_ms, completed_at_ms = 0, lease_owner = '',
  lease_expires_at_ms = 0
WHERE task_id IN (SELECT value FROM json_each(:task_ids)) AND status = 5
RETURNING task_id, reaction_id, source_global_seq, subject, attempt, last_error;

-- name: forget
-- Reads the whole table: an index would cost every task more than this costs once a day.
DELETE FROM tape_tasks WHERE status = 3 AND completed_at_ms < :before_ms RETURNING task_id;

-- name: outcomes
-- Reads the whole table; for reports.
SELECT reaction_id, status, count(*), sum(attempts), sum(coalesced),
       CAST(avg(CASE WHEN status IN (3, 5) THEN completed_at_ms - created_at_ms ELSE 0 END) AS INTEGER),
       max(CASE WHEN status IN (3, 5) THEN completed_at_ms - created_at_ms ELSE 0 END), min(created_at_ms)
FROM tape_tasks
GROUP BY reaction_id, status
ORDER BY reaction_id, status;
