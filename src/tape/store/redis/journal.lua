-- name: reading
-- Entries are fetched a few at a time, because the largest are 1 MiB and a page has a budget.
local STEP = 32
local limit, budget = tonumber(ARGV[1]), tonumber(ARGV[2])
local page, size, weight = {}, 0, 0

local function is_full()
  return size >= limit or weight >= budget
end

local function take(entry)
  local text = entry[2][4]
  page[#page + 1], page[#page + 2], page[#page + 3] = entry[1], entry[2][2], text
  size, weight = size + 1, weight + #text
end

local function fetch(run_id, seq, last)
  local count = math.min(STEP, limit - size)
  return redis.call('XRANGE', root .. ':entries:' .. run_id, format('%d', seq), last, 'COUNT', count)
end

-- name: bounds
return {bounds()}

-- name: read
-- ARGV: 1 most entries  2 most bytes  3 after  4 most positions to look at  5 how an event must begin
-- Returns the bounds and how far it looked, and run, id, at and event of each entry.
local _, head, floor = journal()
local looked_to, start = math.max(tonumber(ARGV[3]), floor - 1), ARGV[5]
local through = math.min(head, looked_to + tonumber(ARGV[4]))

-- Reads a run from a seq to the end of a range of positions or of the window.
local function read_range(run_id, seq, last)
  while seq <= last and not is_full() do
    local entries = fetch(run_id, seq, format('%d', last))
    if #entries == 0 then
      return
    end
    for _, entry in ipairs(entries) do
      local at, position = halves(entry[1])
      if looked_to >= through or is_full() or position ~= looked_to + 1 then
        return
      end
      if start == '' or string.sub(entry[2][4], 1, #start) == start then
        page[#page + 1] = run_id
        take(entry)
      end
      seq, looked_to = at + 1, position
    end
  end
end

local before
repeat
  before = looked_to
  for _, pointer in ipairs(redis.call('XRANGE', root .. ':positions', format('%d', looked_to + 1), '+', 'COUNT', STEP)) do
    local position, last = halves(pointer[1]), tonumber(pointer[2][4])
    read_range(pointer[2][2], last - (position - looked_to) + 1, last)
    if looked_to < position then
      break
    end
  end
until looked_to >= through or looked_to == before or is_full()
local epoch, first, last, changes = bounds()
return {epoch, first, last, changes, format('%d', looked_to), page}

-- name: read_run
-- ARGV: 1 most entries  2 most bytes  3 run  4… its segments: whose entries, from which seq, to which one or +
-- Returns the bounds and the run's head, id, at and event of each entry, and of each segment the floor of its run and
-- how many of the entries are its own.
local owned = {}

local function read_range(run_id, seq, last)
  local before, entries = size
  repeat
    entries = fetch(run_id, seq, last)
    for _, entry in ipairs(entries) do
      if is_full() then
        break
      end
      take(entry)
      seq = halves(entry[1]) + 1
    end
  until #entries == 0 or is_full() or seq > (tonumber(last) or math.huge)
  return size - before
end

for place = 4, #ARGV, 3 do
  local run_id, first, last = unpack(ARGV, place, place + 2)
  local _, floor = head_of(run_id)
  owned[#owned + 1] = format('%d', floor or 1)
  owned[#owned + 1] = is_full() and 0 or read_range(run_id, tonumber(first), last)
end
local epoch, floor, head, changes = bounds()
return {epoch, floor, head, changes, head_fields(ARGV[3]), page, owned}
