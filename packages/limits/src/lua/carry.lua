-- carry: note the holds of older epochs, which outlived a loss of data, for `open` to count in its budgets.
-- KEYS  1 partition, 2 leases, 3 survivors, 4… holds
-- ARGV  1 epoch, 2… hold ids
-- Returns 1, or 0 when the partition has another epoch or is open
local partition = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if partition[1] ~= ARGV[1] or partition[2] ~= 'closed' then return 0 end
for i = 4, #KEYS do
  local id = ARGV[i - 2]
  local hold = redis.call('HMGET', KEYS[i], 'uses', 'amount', 'budgets')
  if hold[1] then
    redis.call('HSET', KEYS[3], id, hold[1] .. ' ' .. (tonumber(hold[2]) and hold[2] or '0') .. ' ' .. hold[3])
  else
    redis.call('ZREM', KEYS[2], id)
  end
end
return 1
