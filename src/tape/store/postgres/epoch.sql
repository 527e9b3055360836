-- name: begin
-- Larger than the one before even where the clock is behind it. No count of changes that an appender knows from the lost
-- journal comes up to a time, so none of them takes what it remembers of runs for what is there now.
UPDATE tape_meta SET epoch = greatest(epoch + 1, :now_ms), changes = greatest(changes + 1, :now_ms) RETURNING epoch;
