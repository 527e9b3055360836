-- name: begin
-- Larger than the epoch before, even if the clock is behind it.
UPDATE tape_meta SET epoch = max(epoch + 1, :now_ms) RETURNING epoch;
