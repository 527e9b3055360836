-- name: open
-- ARGV: 1 run  2 seen epoch  3 seen head  4… label and started, each a field and a value, where there are any
-- A life begins after the last seq of the one before.
local run_id, now = ARGV[1], now_ms()
local epoch, head = current_journal(now, tonumber(ARGV[2]), tonumber(ARGV[3]))
local last, floor, opened, closed, type = head_of(run_id)
if last and not closed then
  return {'open'}
end
local key, opened_at = root .. ':run:' .. run_id, format('%d', now)
redis.call('HDEL', key, 'closed_at', 'reaped_at', 'label', 'started')
redis.call('HSET', key, 'opened_at', opened_at, unpack(ARGV, 4))
redis.call('ZADD', root .. ':runs', 'NX', opened_at, run_id)
if string.sub(run_id, 1, 5) ~= 'tape.' then
  redis.call('ZADD', root .. ':open', opened_at, run_id)
end
local found = set_head(run_id, last or 0, floor or 1, last or 0, nil, type)
change(0)
return {'done', found, format('%d', epoch), format('%d', head)}

-- name: close
-- ARGV: 1 run
local run_id, key = ARGV[1], root .. ':run:' .. ARGV[1]
local last, floor, opened, closed, type = head_of(run_id)
if not last then
  return {'missing'}
elseif not closed then
  set_head(run_id, last, floor, opened, last, type)
  redis.call('HSET', key, 'closed_at', format('%d', now_ms()))
  redis.call('ZREM', root .. ':open', run_id)
  change(0)
end
return {'done', redis.call('HGET', key, 'head')}

-- name: reap
-- ARGV: 1 run
local run_id = ARGV[1]
local last, floor, opened, closed, type = head_of(run_id)
if not last then
  return {'missing'}
elseif not closed then
  return {'open'}
end
redis.call('HSETNX', root .. ':run:' .. run_id, 'reaped_at', format('%d', now_ms()))
change(forget(run_id, last + 1, last))
local found = set_head(run_id, last, last + 1, opened, closed, type)
return {'done', found}

-- name: heads
-- ARGV: the runs
local found = {}
for index, run_id in ipairs(ARGV) do
  found[index] = redis.call('HGET', root .. ':run:' .. run_id, 'head')
end
return found

-- name: live
local found = {}
for index, run_id in ipairs(redis.call('ZRANGE', root .. ':open', 0, -1)) do
  found[index] = {run_id, unpack(redis.call('HMGET', root .. ':run:' .. run_id, 'head', 'label', 'started'))}
end
return found
