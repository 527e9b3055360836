-- name: begin
-- Larger than the epoch before, even if the clock is behind it. `changes` becomes a time, which no count that an appender
-- cached from the lost journal reaches, so every appender drops its cache. No earlier term remains.
WITH lost AS (
  DELETE FROM tape_terms
), begun AS (
  UPDATE tape_meta SET epoch = greatest(epoch + 1, :now_ms), changes = greatest(changes + 1, :now_ms)
  RETURNING epoch, archived_through, cluster, timeline
), term AS (
  INSERT INTO tape_terms (epoch, first_seq, cluster, timeline, began_at_ms)
  SELECT epoch, greatest(archived_through, coalesce((SELECT max(global_seq) FROM tape_journal), 0)) + 1, cluster, timeline,
         :now_ms
  FROM begun
)
SELECT epoch FROM begun;
