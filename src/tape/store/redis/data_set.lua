-- What every script begins with, and those that begin an epoch.
--
-- KEYS[1] is the root, {prefix}: in braces, so that all keys lie on one node, which scripts need. Under it are
--   :journal         hash        state: epoch, head, floor, ts_ms of the last entry, changes (of runs, but by appends);
--                                server: the process that had it last; safe: 0 once that may have lost something by
--                                ending; appender:<id>: number, ts_ms and answer of an appender's last call
--   :positions       stream      <global_seq>-<n>  run, seq: n entries of a run, one after the other, end here
--   :runs            sorted set  every run there ever was, by when it was first opened
--   :open            sorted set  the open runs of users, by when they were opened
--   :opened          sorted set  all runs of users, by when they were last opened
--   :ids             sorted set  all runs of users, all with score 0 and so in the order of their ids
--   :closed          sorted set  the closed runs of users, by when they were closed
--   :leases          sorted set  the open runs that a producer holds, by when it last renewed its lease
--   :run:<run_id>    hash        head: last seq, floor, opened seq, closed seq or -, content type or -; label, started,
--                                app, user, session, opened_at, closed_at, reaped_at; producer, while it is leased; a
--                                fork's parent, fork_seq and lineage: run, its last seq inherited, run, its last seq…
--   :forks:<run_id>  set         the runs that were forked from it
--   :entries:<run>   stream      <seq>-<global_seq>  at: ts_ms, epoch and depth; event: the packed event
--   :key:<key>       string      what an idempotency key stands for: digest, first position, ts_ms, seqs; 60 days
--   :keys            sorted set  idempotency keys, by the ts_ms of what they stand for
--   :grown           channel     the head after an append; nothing after another change
-- An entry is stored once, with its run. Positions below the journal's floor lead nowhere and are trimmed with it.
-- States and heads are one text each, because a script is charged more for an array of four than for reading a text.
-- Numbers are exact to 2^53, if they are written with %d.

-- name: shared
local root = KEYS[1]
local format, match = string.format, string.match

local function now_ms()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end

-- Both halves of a stream's id.
local function halves(id)
  local major, minor = match(id, '^(%d+)-(%d+)$')
  return tonumber(major), tonumber(minor)
end

-- Epoch, head, floor, ts_ms and changes of the journal; the epoch is 0 where there is none.
local function journal()
  local state = redis.call('HGET', root .. ':journal', 'state') or '0 0 1 0 0'
  local epoch, head, floor, ts, changes = match(state, '(%d+) (%d+) (%d+) (%d+) (%d+)')
  return tonumber(epoch), tonumber(head), tonumber(floor), tonumber(ts), tonumber(changes)
end

local function set_journal(epoch, head, floor, ts, changes)
  redis.call('HSET', root .. ':journal', 'state', format('%d %d %d %d %d', epoch, head, floor, ts, changes))
end

-- Epoch, floor, head and changes, as readers get them.
local function bounds()
  local epoch, head, floor, _, changes = journal()
  return format('%d', epoch), format('%d', floor), format('%d', head), format('%d', changes)
end

-- The same for a writer. If there is no journal, or its head is below what the caller has seen, the data set is another
-- one: a larger epoch begins, and all waiting readers are woken.
local function current_journal(now, seen_epoch, seen_head)
  local epoch, head, floor, ts, changes = journal()
  if epoch == 0 or epoch < seen_epoch or (epoch == seen_epoch and head < seen_head) then
    epoch = math.max(now, epoch + 1, seen_epoch + 1)
    set_journal(epoch, head, floor, ts, changes)
    redis.pcall('PUBLISH', root .. ':grown', '')
  end
  return epoch, head, floor, ts, changes
end

-- Last seq, floor, opened seq, closed seq and content type of a run; nothing where there is no such run.
local function head_of(run_id)
  local head = redis.call('HGET', root .. ':run:' .. run_id, 'head')
  if head then
    local last, floor, opened, closed, type = match(head, '^(%d+) (%d+) (%d+) (%S+) (%S+)$')
    return tonumber(last), tonumber(floor), tonumber(opened), tonumber(closed), type ~= '-' and type or nil
  end
end

local function set_head(run_id, last, floor, opened, closed, type)
  local head = format('%d %d %d %s %s', last, floor, opened, closed and format('%d', closed) or '-', type or '-')
  redis.call('HSET', root .. ':run:' .. run_id, 'head', head)
  return head
end

-- A head with its lineage, if it has one, as readers get it.
local function head_fields(run_id)
  local head, lineage = unpack(redis.call('HMGET', root .. ':run:' .. run_id, 'head', 'lineage'))
  return head and lineage and head .. ' ' .. lineage or head
end

-- Forgets the entries of a run below a seq. Returns the last position that went, or 0.
local function forget(run_id, floor, last)
  local entries = root .. ':entries:' .. run_id
  local gone = redis.call('XREVRANGE', entries, format('%d', floor - 1), '-', 'COUNT', 1)[1]
  if not gone then
    return 0
  elseif floor > last then
    redis.call('DEL', entries)
  else
    redis.call('XTRIM', entries, 'MINID', '=', format('%d', floor))
  end
  local _, position = halves(gone[1])
  return position
end

-- Counts a change of runs that is no append, wakes all readers, and raises the journal's floor above the last trimmed
-- position.
local function change(gone)
  local epoch, head, floor, ts, changes = journal()
  if gone >= floor then
    floor = gone + 1
    redis.call('XTRIM', root .. ':positions', 'MINID', '=', format('%d', floor))
  end
  set_journal(epoch, head, floor, ts, changes + 1)
  redis.pcall('PUBLISH', root .. ':grown', '')
end

-- name: enter
-- ARGV: 1 '1' if the server's restarts lose nothing  2 seen epoch  3 seen head
-- A restart that may have lost entries begins an epoch, even if this client has seen none of what is lost. It is judged
-- by what was known of the process that ended, and by the settings of the next: nobody saw those it had at its end.
local now = now_ms()
local server = match(redis.call('INFO', 'server'), 'run_id:(%x+)')
local epoch, head, floor, ts, changes = current_journal(now, tonumber(ARGV[2]), tonumber(ARGV[3]))
local before, was_safe = unpack(redis.call('HMGET', root .. ':journal', 'server', 'safe'))
local is_safe = ARGV[1] == '1' and was_safe ~= '0'
if before and before ~= server then
  if not is_safe then
    epoch = math.max(now, epoch + 1)
    set_journal(epoch, head, floor, ts, changes)
  end
  is_safe = ARGV[1] == '1'
end
redis.call('HSET', root .. ':journal', 'server', server, 'safe', is_safe and '1' or '0')

-- An appender that was silent for ten minutes repeats no call any more.
local fields = redis.call('HGETALL', root .. ':journal')
for place = 1, #fields, 2 do
  local appended_at = match(fields[place], '^appender:') and match(fields[place + 1], '^%d+ (%d+) ')
  if appended_at and now - appended_at > 600000 then
    redis.call('HDEL', root .. ':journal', fields[place])
  end
end
return {format('%d', epoch), format('%d', head)}

-- name: begin
-- ARGV: 1 seen epoch  2 seen head
local now = now_ms()
local epoch, head, floor, ts, changes = current_journal(now, tonumber(ARGV[1]), tonumber(ARGV[2]))
epoch = math.max(now, epoch + 1)
set_journal(epoch, head, floor, ts, changes)
redis.pcall('PUBLISH', root .. ':grown', '')
return {format('%d', epoch), format('%d', head)}
