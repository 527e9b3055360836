-- name: ending
-- Closing a run ends its lease, so an append that opens the run again need not check it.
local function end_run(run_id, now)
  local last, floor, opened, _, type = head_of(run_id)
  local key, closed_at = root .. ':run:' .. run_id, format('%d', now)
  redis.call('HSET', key, 'closed_at', closed_at)
  redis.call('HDEL', key, 'producer')
  redis.call('ZREM', root .. ':leases', run_id)
  redis.call('ZREM', root .. ':open', run_id)
  if string.sub(run_id, 1, 5) ~= 'tape.' then
    redis.call('ZADD', root .. ':closed', closed_at, run_id)
  end
  return set_head(run_id, last, floor, opened, last, type)
end

-- name: records
-- A run as the directory knows it: ms of silence, then the fields of its hash.
local function record(run_id, now)
  local renewed_at = redis.call('ZSCORE', root .. ':leases', run_id)
  return {run_id, renewed_at and format('%d', now - renewed_at), head_fields(run_id),
          unpack(redis.call('HMGET', root .. ':run:' .. run_id, 'opened_at', 'closed_at', 'reaped_at', 'label',
                            'started', 'app', 'user', 'session'))}
end

-- name: open
-- ARGV: 1 run  2 seen epoch  3 seen head  4 producer, or nothing  5… the fields of its hash and their values
-- A run that is opened again continues after its last seq.
local run_id, now, producer = ARGV[1], now_ms(), ARGV[4]
local epoch, head = current_journal(now, tonumber(ARGV[2]), tonumber(ARGV[3]))
local last, floor, opened, closed, type = head_of(run_id)
if last and not closed then
  return {'open'}
end
local key, opened_at = root .. ':run:' .. run_id, format('%d', now)
redis.call('HDEL', key, 'closed_at', 'reaped_at', 'label', 'started', 'app', 'user', 'session')
redis.call('HSET', key, 'opened_at', opened_at, unpack(ARGV, 5))
redis.call('ZADD', root .. ':runs', 'NX', opened_at, run_id)
redis.call('ZREM', root .. ':closed', run_id)
if string.sub(run_id, 1, 5) ~= 'tape.' then
  redis.call('ZADD', root .. ':open', opened_at, run_id)
  redis.call('ZADD', root .. ':opened', opened_at, run_id)
  redis.call('ZADD', root .. ':ids', 0, run_id)
end
if producer ~= '' then
  redis.call('HSET', key, 'producer', producer)
  redis.call('ZADD', root .. ':leases', opened_at, run_id)
end
set_head(run_id, last or 0, floor or 1, last or 0, nil, type)
change(0)
return {'done', head_fields(run_id), format('%d', epoch), format('%d', head)}

-- name: close
-- ARGV: 1 run
local run_id = ARGV[1]
local last, _, _, closed = head_of(run_id)
if not last then
  return {'missing'}
elseif not closed then
  end_run(run_id, now_ms())
  change(0)
end
return {'done', head_fields(run_id)}

-- name: reap
-- ARGV: 1 run
-- A fork that an append has opened again is no longer reaped.
local run_id = ARGV[1]
local last, floor, opened, closed, type = head_of(run_id)
if not last then
  return {'missing'}
elseif not closed then
  return {'open'}
end
local living = 0
for _, child in ipairs(redis.call('SMEMBERS', root .. ':forks:' .. run_id)) do
  living = living + 1 - redis.call('HEXISTS', root .. ':run:' .. child, 'reaped_at')
end
if living > 0 then
  return {'forked', living}
end
redis.call('HSETNX', root .. ':run:' .. run_id, 'reaped_at', format('%d', now_ms()))
change(forget(run_id, last + 1, last))
set_head(run_id, last, last + 1, opened, closed, type)
return {'done', head_fields(run_id)}

-- name: renew
-- ARGV: 1 producer  2 whether it takes open runs that nobody holds  3… the runs
-- Returns those it holds now.
local producer, adopts, held, now = ARGV[1], ARGV[2] == '1', {}, format('%d', now_ms())
for place = 3, #ARGV do
  local run_id = ARGV[place]
  local key = root .. ':run:' .. run_id
  local holder = redis.call('HGET', key, 'producer')
  if not holder and adopts then
    local last, _, _, closed = head_of(run_id)
    if last and not closed then
      redis.call('HSET', key, 'producer', producer)
      holder = producer
    end
  end
  if holder == producer then
    redis.call('ZADD', root .. ':leases', now, run_id)
    held[#held + 1] = run_id
  end
end
return held

-- name: close_silent
-- ARGV: 1 ms of silence
-- Returns run and head, run and head, …
local closed, now = {}, now_ms()
local through = format('%d', now - tonumber(ARGV[1]))
for _, run_id in ipairs(redis.call('ZRANGEBYSCORE', root .. ':leases', '-inf', through)) do
  end_run(run_id, now)
  closed[#closed + 1], closed[#closed + 2] = run_id, head_fields(run_id)
end
if #closed > 0 then
  change(0)
end
return closed

-- name: find
-- ARGV: 1 run
return redis.call('EXISTS', root .. ':run:' .. ARGV[1]) == 1 and record(ARGV[1], now_ms())

-- name: listed
-- ARGV: 1 a sorted set of runs  2 up or down  3 a time  4 a run  5 how many
-- The runs after the run with that time, in the order of times and then of ids.
local key, at, run_id, count, found, now = root .. ':' .. ARGV[1], ARGV[3], ARGV[4], tonumber(ARGV[5]), {}, now_ms()
local is_up = ARGV[2] == 'up'
local range = is_up and 'ZRANGEBYSCORE' or 'ZREVRANGEBYSCORE'
for _, other in ipairs(redis.call(range, key, at, at)) do
  if #found < count and (is_up and other > run_id or not is_up and other < run_id) then
    found[#found + 1] = record(other, now)
  end
end
if #found < count then
  for _, other in ipairs(redis.call(range, key, '(' .. at, is_up and '+inf' or '-inf', 'LIMIT', 0, count - #found)) do
    found[#found + 1] = record(other, now)
  end
end
return found

-- name: listed_by_id
-- ARGV: 1 a run  2 a prefix  3 how many
-- The runs whose ids begin with the prefix, after the run. No id has a byte of 127.
local found, now = {}, now_ms()
local first = ARGV[1] >= ARGV[2] and '(' .. ARGV[1] or '[' .. ARGV[2]
for index, run_id in ipairs(redis.call('ZRANGEBYLEX', root .. ':ids', first, '(' .. ARGV[2] .. '\127', 'LIMIT', 0,
                                       tonumber(ARGV[3]))) do
  found[index] = record(run_id, now)
end
return found

-- name: heads
-- ARGV: the runs
local found = {}
for index, run_id in ipairs(ARGV) do
  found[index] = head_fields(run_id)
end
return found
