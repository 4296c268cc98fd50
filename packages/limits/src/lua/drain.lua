-- drain: the next entries for the ledger, and whether Redis still holds what the ledger has seen.
-- A closed partition is opened when nothing is left to drain and every hold in it is noted (see `carry`).
-- KEYS  1 partition, 2 usage stream, 3 leases, 4 survivors
-- ARGV  1 epoch and 2 last stream id that Postgres knows, 3 most entries
-- Returns {'ok', entries} {'carry', ids of holds to note}
--      or {'lost'}: Redis is empty, behind the ledger or another process {'epoch', epoch in Redis}
local partition = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'drained', 'run')
if not partition[1] then return {'lost'} end
if partition[1] ~= ARGV[1] then return {'epoch', tonumber(partition[1])} end
-- A restart or failover may have lost writes that the ledger had not seen yet, or never sees: a revocation.
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
if partition[4] ~= run then return {'lost'} end
-- The last drained entry was either trimmed by `trim`, which notes it, or it still stands in the stream.
if partition[3] ~= ARGV[2] and #redis.call('XRANGE', KEYS[2], ARGV[2], ARGV[2]) == 0 then return {'lost'} end

local entries = redis.call('XRANGE', KEYS[2], '(' .. ARGV[2], '+', 'COUNT', ARGV[3])
if #entries == 0 and partition[2] == 'closed' then
  local missing = {}
  for _, id in ipairs(redis.call('ZRANGE', KEYS[3], 0, -1)) do
    if redis.call('HEXISTS', KEYS[4], id) == 0 then missing[#missing + 1] = id end
  end
  if #missing > 0 then return {'carry', missing} end
  redis.call('HSET', KEYS[1], 'state', 'open')
end
return {'ok', entries}
