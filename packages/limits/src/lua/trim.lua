#!lua flags=allow-oom
-- trim: drops the entries that the ledger has committed, and notes how far that is; never goes back.
-- A call may come twice when Redis lost data. The ledger counts it once. A budget that counted the second entry too,
-- because it was loaded before it, gets it back here, when the entry is dropped.
-- KEYS     partition, usage: the stream; each: budget: of an entry that the ledger had before
-- ARGV     epoch; last_id: committed; each: entry_id, uses, cost: both below 0 in an entry that gives back; tokens
-- Returns  1, or 0 when the partition has another epoch or is trimmed further already
-- include: whole, stream-id
local epoch, drained = unpack(redis.call('HMGET', key.partition, 'epoch', 'drained'))
if epoch ~= arg.epoch or not is_before(drained, arg.last_id) then return 0 end
local doubly, counts_tokens = {}, {}
for i = 1, #each do
  local id = each.entry_id[i]
  local budget_epoch, from, window = unpack(redis.call('HMGET', each.budget[i], 'epoch', 'from', 'window'))
  local stands = #redis.call('XRANGE', key.usage, id, id) == 1
  counts_tokens[i] = window and each.tokens[i] ~= '0'
  doubly[i] = stands and budget_epoch == epoch and is_before(from, id)
end

-- MINID keeps its own id, so the threshold is the id after the last committed one.
local ms, seq = split_id(arg.last_id)
redis.call('XTRIM', key.usage, 'MINID', whole(ms) .. '-' .. whole(seq + 1))
for i = 1, #each do
  if doubly[i] then
    redis.call('HINCRBY', each.budget[i], 'used', whole(0 - tonumber(each.uses[i])))
    redis.call('HINCRBY', each.budget[i], 'settled', whole(0 - tonumber(each.cost[i])))
    if counts_tokens[i] then redis.call('HINCRBY', each.budget[i], 'tokens', '-' .. each.tokens[i]) end
  end
end
redis.call('HSET', key.partition, 'drained', arg.last_id)
return 1
