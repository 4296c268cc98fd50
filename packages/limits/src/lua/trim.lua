-- trim: drop the entries that the ledger has committed, and note how far that is; never goes back.
-- A call may come twice when Redis lost data. The ledger counts it once; the budgets that counted the second
-- entry too, those opened before it, get it back here, when the entry is dropped.
-- KEYS  1 partition, 2 usage stream, 3… a budget of an entry that the ledger had before
-- ARGV  1 epoch, 2 last committed id (ms, seq apart: 2 ms, 3 seq), then for each budget: entry's ms, seq, uses, cost
--       (below 0 in an entry that gives back)
-- Returns 1, or 0 when the partition has another epoch or is trimmed further already
local function before(id, ms, seq)
  local idMs, idSeq = string.match(id, '^(%d+)-(%d+)$')
  idMs, idSeq, ms, seq = tonumber(idMs), tonumber(idSeq), tonumber(ms), tonumber(seq)
  return idMs < ms or (idMs == ms and idSeq < seq)
end

local partition = redis.call('HMGET', KEYS[1], 'epoch', 'drained')
if partition[1] ~= ARGV[1] or not before(partition[2], ARGV[2], ARGV[3]) then return 0 end
for i = 3, #KEYS do
  local at = 4 + (i - 3) * 4
  local budget = redis.call('HMGET', KEYS[i], 'epoch', 'from')
  local id = ARGV[at] .. '-' .. ARGV[at + 1]
  local stands = #redis.call('XRANGE', KEYS[2], id, id) == 1
  if stands and budget[1] == ARGV[1] and before(budget[2], ARGV[at], ARGV[at + 1]) then
    redis.call('HINCRBY', KEYS[i], 'used', string.format('%.0f', 0 - tonumber(ARGV[at + 2])))
    redis.call('HINCRBY', KEYS[i], 'settled', string.format('%.0f', 0 - tonumber(ARGV[at + 3])))
  end
end
redis.call('HSET', KEYS[1], 'drained', ARGV[2] .. '-' .. ARGV[3])
-- MINID keeps its own id, so the threshold is the id after the last committed one.
redis.call('XTRIM', KEYS[2], 'MINID', ARGV[2] .. '-' .. string.format('%.0f', tonumber(ARGV[3]) + 1))
return 1
