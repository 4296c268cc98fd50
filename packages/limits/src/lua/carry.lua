#!lua flags=allow-oom
-- carry: notes the holds of older epochs, which outlived a loss of data, for `load` to count in its budgets.
-- KEYS     partition, leases, survivors; each: hold
-- ARGV     epoch; each: hold_id
-- Returns  1, or 0 when the partition has another epoch or is open
local epoch, state = unpack(redis.call('HMGET', key.partition, 'epoch', 'state'))
if epoch ~= arg.epoch or state ~= 'closed' then return 0 end
for i = 1, #each do
  local id = each.hold_id[i]
  local uses, amount, grant, budget_ids, places, tokens =
    unpack(redis.call('HMGET', each.hold[i], 'uses', 'amount', 'grant', 'budgets', 'places', 'token_hold'))
  -- The stream has a charged call already.
  if not grant then uses, amount = '0', '0' end
  if budget_ids then
    redis.call('HSET', key.survivors, id, uses .. ' ' .. (tonumber(amount) and amount or '0') .. ' ' .. budget_ids ..
      ((places or tokens) and ' ' .. (places or '') or '') .. (tokens and ' ' .. tokens or ''))
  else
    redis.call('ZREM', key.leases, id)
  end
end
return 1
