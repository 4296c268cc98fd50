-- drain: the next entries for the ledger, and whether Redis still holds what the ledger has seen.
-- A closed partition with nothing left to drain is opened.
-- KEYS  1 partition, 2 usage stream
-- ARGV  1 epoch and 2 last stream id that Postgres knows, 3 most entries
-- Returns {'ok', entries} {'lost'}: Redis is behind the ledger or empty {'epoch', epoch in Redis}
local partition = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'drained')
if not partition[1] then return {'lost'} end
if partition[1] ~= ARGV[1] then return {'epoch', tonumber(partition[1])} end
-- The last drained entry was either trimmed by `trim`, which notes it, or it still stands in the stream.
if partition[3] ~= ARGV[2] and #redis.call('XRANGE', KEYS[2], ARGV[2], ARGV[2]) == 0 then return {'lost'} end
local entries = redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])
if #entries == 0 and partition[2] == 'closed' then redis.call('HSET', KEYS[1], 'state', 'open') end
return {'ok', entries}
