-- name: trim
-- ARGV: 1 through  2 rank of the first run to look at  3 how many runs
-- The floor rises with the first call; the next ones go on with the runs. Returns how many runs there were, or -1 when
-- the position is beyond the head, and the head.
local through, rank = tonumber(ARGV[1]), tonumber(ARGV[2])
local _, head = journal()
if through > head then
  return {-1, format('%d', head)}
end
change(through)

-- The first seq of a run that is above the position: seqs and positions rise together.
local function first_above(run_id, low, high)
  while low < high do
    local middle = math.floor((low + high) / 2)
    local seq = format('%d', middle)
    local entry = redis.call('XRANGE', root .. ':entries:' .. run_id, seq, seq)[1]
    local _, position = halves(entry and entry[1] or '0-0')
    if position > through then
      high = middle
    else
      low = middle + 1
    end
  end
  return low
end

local runs = redis.call('ZRANGE', root .. ':runs', rank, rank + tonumber(ARGV[3]) - 1)
for _, run_id in ipairs(runs) do
  local last, floor, opened, closed, type = head_of(run_id)
  local fork_seq = tonumber(redis.call('HGET', root .. ':run:' .. run_id, 'fork_seq') or '0')
  local begin = math.max(floor, fork_seq + 1)
  local first = first_above(run_id, begin, last + 1)
  if first > begin then
    forget(run_id, first, last)
    set_head(run_id, last, first, opened, closed, type)
  end
end
return {#runs, format('%d', head)}

-- name: trim_run
-- ARGV: 1 run  2 entries to keep
local run_id = ARGV[1]
local last, floor, opened, closed, type = head_of(run_id)
if not last then
  return {'missing'}
end
local first = last - tonumber(ARGV[2]) + 1
if first > floor then
  change(forget(run_id, first, last))
  set_head(run_id, last, first, opened, closed, type)
end
return {'done', head_fields(run_id)}

-- name: forget_keys
-- ARGV: 1 before, in ms  2 how many
-- Returns how many it forgot and how many it looked at: some have expired by themselves.
local forgotten = 0
local keys = redis.call('ZRANGEBYSCORE', root .. ':keys', '-inf', '(' .. ARGV[1], 'LIMIT', 0, ARGV[2])
for _, key in ipairs(keys) do
  forgotten = forgotten + redis.call('DEL', root .. ':key:' .. key)
  redis.call('ZREM', root .. ':keys', key)
end
return {forgotten, #keys}
