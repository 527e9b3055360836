-- Appends a message to a stream unless one with its key was appended already, and returns its id.
-- KEYS[1]  the stream
-- KEYS[2]  tape:sent:{<stream>}:<key>, the id under which the message is in the stream; it expires
-- ARGV     seconds to remember the key, entries to keep (0: all), then names and values
local sent = redis.call('GET', KEYS[2])
if sent then
  return sent
end
local command = {'XADD', KEYS[1]}
if tonumber(ARGV[2]) > 0 then
  table.insert(command, 'MAXLEN')
  table.insert(command, '~')
  table.insert(command, ARGV[2])
end
table.insert(command, '*')
for index = 3, #ARGV do
  table.insert(command, ARGV[index])
end
local id = redis.call(unpack(command))
redis.call('SET', KEYS[2], id, 'EX', ARGV[1])
return id
