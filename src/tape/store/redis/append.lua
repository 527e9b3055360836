-- name: append
-- Judges a group of requests in order, as core.sequence.decide does, and writes what it accepts.
-- ARGV: 1 the call, packed  2… the events of all requests, one after the other
-- The call: appender, its number, epoch and head it has seen, entries a run keeps, ms a key lives, the runs' ids,
-- content types, and the requests: opens, key, digest, expected seq (false: any), runs touched (run, type, run, type…),
-- the run of each event, the cause of each event (0: none; empty when none has one), and of a fork its parent and where
-- it begins (false: it is none).
local appender, number, seen_epoch, seen_head, keep, key_ttl, names, types, requests = unpack(cmsgpack.unpack(ARGV[1]))

-- A call that is sent again gets its first result; nobody waits for one that a later call has overtaken.
local now = now_ms()
local record = 'appender:' .. appender
local recorded = redis.call('HGET', root .. ':journal', record)
if recorded then
  local last, answer = match(recorded, '^(%d+) %d+ (.*)$')
  last = tonumber(last)
  if last == number then
    return answer
  elseif last > number then
    return redis.error_reply('STALE call ' .. number)
  end
end

local epoch, base, floor, last_ts, changes = current_journal(now, seen_epoch, seen_head)
local ts = math.max(now, last_ts)
local when = format('%d %d ', ts, epoch)
local uncaused = when .. '0'

local runs, lasts = {}, {}
for index, name in ipairs(names) do
  local last, run_floor, opened, closed, type = head_of(name)
  lasts[index] = last or 0
  runs[index] = {
    name = name, entries = root .. ':entries:' .. name, is_known = last, last = last or 0,
    floor = run_floor or 1, opened = opened or 0, closed = closed, type = type,
  }
end

-- The state of the call: its last position, the depths it gave, the run of its last entries and how many they are.
local state = {head = base, depths = {}, deep = {}, size = 0}

-- Consecutive entries of one run share a pointer.
local function end_stretch(state)
  if state.size > 0 then
    local id = format('%d-%d', state.head, state.size)
    redis.call('XADD', root .. ':positions', id, 'run', state.run.name, 'seq', format('%d', state.run.last))
    state.size = 0
  end
end

-- The depth of an entry; 0 where it is gone, as of one that nothing caused.
local function depth_of(cause)
  local pointer = redis.call('XRANGE', root .. ':positions', format('%d', cause), '+', 'COUNT', 1)[1]
  local position, size = halves(pointer and pointer[1] or '0-0')
  if cause <= position - size then
    return 0
  end
  local seq = format('%d', pointer[2][4] - (position - cause))
  local entry = redis.call('XRANGE', root .. ':entries:' .. pointer[2][2], seq, seq)[1]
  return entry and tonumber(match(entry[2][2], '%d+$')) or 0
end

-- What a child inherits, as core.fork has it: those who own a seq up to the fork, and how many they are.
local function lineage_of_child(parent, at)
  parent.lineage = parent.lineage or redis.call('HGET', root .. ':run:' .. parent.name, 'lineage') or ''
  local found, before = {}, 0
  for name, through in string.gmatch(format('%s %s %d', parent.lineage, parent.name, at), '(%S+) (%d+)') do
    if before < at then
      found[#found + 1] = format('%s %d', name, math.min(tonumber(through), at))
    end
    before = tonumber(through)
  end
  return table.concat(found, ' '), #found
end

local function fork_objection(run, parent, at)
  if run.is_known then
    return 'exists', 0
  elseif not parent.is_known then
    return 'orphan', 0
  elseif at > parent.last then
    return 'beyond', 0, parent.last
  elseif at + 1 < parent.floor then
    return 'gone', 0, parent.floor
  end
  local _, ancestors = lineage_of_child(parent, at)
  if ancestors > 256 then
    return 'deep', 0, ancestors
  end
end

local function run_objection(opens, expected, touched)
  for place = 1, #touched, 2 do
    local index, type = touched[place], types[touched[place + 1]]
    local run = runs[index]
    if not opens and not run.is_known then
      return 'missing', index
    elseif not opens and run.closed then
      return 'closed', index
    elseif expected and expected ~= run.last then
      return 'seq', index, run.last
    elseif run.type and run.type ~= type then
      return 'type', index, run.type
    end
  end
end

local function cause_objection(causes, head)
  for place, cause in ipairs(causes) do
    if cause > head then
      return 'cause', place, head
    end
  end
end

local function open(run, ts)
  local key, opened_at = root .. ':run:' .. run.name, ts
  if run.is_known then
    opened_at = redis.call('HGET', key, 'opened_at')
    redis.call('HDEL', key, 'closed_at', 'reaped_at')
    redis.call('ZREM', root .. ':closed', run.name)
  else
    redis.call('HSET', key, 'opened_at', ts)
    redis.call('ZADD', root .. ':runs', ts, run.name)
  end
  if string.sub(run.name, 1, 5) ~= 'tape.' then
    redis.call('ZADD', root .. ':open', opened_at, run.name)
    redis.call('ZADD', root .. ':opened', opened_at, run.name)
    redis.call('ZADD', root .. ':ids', 0, run.name)
  end
  run.is_known, run.opened, run.closed = true, run.last, nil
end

-- Begins a child: its last seq is that of the fork, its content type that of its parent.
local function begin(run, parent, at, ts)
  open(run, ts)
  run.last, run.floor, run.type, run.is_moved = at, parent.floor, parent.type, true
  run.lineage = lineage_of_child(parent, at)
  redis.call('HSET', root .. ':run:' .. run.name, 'parent', parent.name, 'fork_seq', format('%d', at))
  redis.call('SADD', root .. ':forks:' .. parent.name, run.name)
  if run.lineage ~= '' then
    redis.call('HSET', root .. ':run:' .. run.name, 'lineage', run.lineage)
  end
end

local function write(state, run, cause, event)
  if state.run ~= run then
    end_stretch(state)
    state.run = run
  end
  state.head, state.size, run.last = state.head + 1, state.size + 1, run.last + 1
  local at = uncaused
  if cause and cause > 0 then
    local depth = (cause > base and (state.depths[cause] or 0) or depth_of(cause)) + 1
    at, state.depths[state.head] = when .. depth, depth
    state.deep[#state.deep + 1], state.deep[#state.deep + 2] = state.head, depth
  end
  redis.call('XADD', run.entries, format('%d-%d', run.last, state.head), 'at', at, 'event', event)
end

local refused, events = {}, 1
for index, request in ipairs(requests) do
  local opens, key, digest, expected, touched, owners, causes, fork = unpack(request)
  local why, place, fact
  local kept = key ~= '' and redis.call('GET', root .. ':key:' .. key)
  if kept then
    local first_digest, first, first_ts, seqs = unpack(cmsgpack.unpack(kept))
    if first_digest == digest then
      why, place, fact = 'replay', first, {first_ts, seqs}
    else
      why, place = 'key', 0
    end
  else
    if fork then
      why, place, fact = fork_objection(runs[touched[1]], runs[fork[1]], fork[2])
    else
      why, place, fact = run_objection(opens, expected, touched)
    end
    if not why then
      why, place, fact = cause_objection(causes, state.head)
    end
  end
  if why then
    refused[#refused + 1] = {index, why, place, fact or 0}
  else
    local first, seqs = state.head + 1, {}
    if fork then
      begin(runs[touched[1]], runs[fork[1]], fork[2], format('%d', ts))
    end
    for touch = 1, fork and 0 or #touched, 2 do
      local run = runs[touched[touch]]
      if not run.is_known or run.closed then
        open(run, format('%d', ts))
      end
      run.type, run.is_moved = types[touched[touch + 1]], true
    end
    for nth, owner in ipairs(owners) do
      local run = runs[owner]
      write(state, run, causes[nth], ARGV[events + nth])
      seqs[nth] = run.last
    end
    if key ~= '' then
      local ttl = format('%d', key_ttl)
      redis.call('SET', root .. ':key:' .. key, cmsgpack.pack({digest, first, ts, seqs}), 'PX', ttl)
      redis.call('ZADD', root .. ':keys', format('%d', ts), key)
      redis.call('ZREMRANGEBYSCORE', root .. ':keys', '-inf', format('%d', ts - key_ttl))
    end
  end
  events = events + #owners
end

if state.head > base then
  end_stretch(state)
  local gone = 0
  for _, run in ipairs(runs) do
    if run.is_moved then
      if run.last - run.floor >= keep then
        run.floor = run.last - keep + 1
        gone = math.max(gone, forget(run.name, run.floor, run.last))
      end
      set_head(run.name, run.last, run.floor, run.opened, nil, run.type)
    end
  end
  if gone >= floor then
    floor = gone + 1
    redis.call('XTRIM', root .. ':positions', 'MINID', '=', format('%d', floor))
  end
end

local answer = cmsgpack.pack({base, ts, epoch, lasts, state.deep, refused})
redis.call('HSET', root .. ':journal', 'state', format('%d %d %d %d %d', epoch, state.head, floor, ts, changes),
           record, format('%d %d ', number, now) .. answer)
if state.head > base then
  redis.pcall('PUBLISH', root .. ':grown', format('%d', state.head))
end
return answer
