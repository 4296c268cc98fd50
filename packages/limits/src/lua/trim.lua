-- trim: drop the entries that the ledger has committed, and note how far that is; never goes back.
-- KEYS  1 partition, 2 usage stream
-- ARGV  1 epoch, 2 last committed id (ms, seq apart: 2 ms, 3 seq)
-- Returns 1, or 0 when the partition has another epoch or is trimmed further already
local partition = redis.call('HMGET', KEYS[1], 'epoch', 'drained')
if partition[1] ~= ARGV[1] then return 0 end
local ms, seq = string.match(partition[2], '^(%d+)-(%d+)$')
local toMs, toSeq = tonumber(ARGV[2]), tonumber(ARGV[3])
if tonumber(ms) > toMs or (tonumber(ms) == toMs and tonumber(seq) >= toSeq) then return 0 end
redis.call('HSET', KEYS[1], 'drained', ARGV[2] .. '-' .. ARGV[3])
-- MINID keeps its own id, so the threshold is the id after the last committed one.
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2] .. '-' .. string.format('%.0f', toSeq + 1))
return 1
