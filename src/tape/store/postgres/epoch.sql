-- name: begin
-- Larger than the one before even where the clock is behind it. No count of changes that an appender knows from the lost
-- journal comes up to a time, so none of them takes what it remembers of runs for what is there now. It goes on from no
-- earlier term.
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
