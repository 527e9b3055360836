-- name: begin
-- Larger than the one before even where the clock is behind it.
UPDATE tape_meta SET epoch = greatest(epoch + 1, :now_ms) RETURNING epoch;
