#!lua flags=allow-oom
-- narrow: lowers the hold of a running call, once its provider has stated the input. It never raises a hold, so running it
-- again changes nothing.
-- KEYS     partition, hold; each: budget
-- ARGV     amount: microdollars
-- Returns  how many microdollars it gave back
-- include: whole
-- It skips a hold of another epoch: budgets of this epoch may count that hold at the amount it had when they were opened.
local epoch = redis.call('HGET', key.partition, 'epoch')
local hold_epoch, held = unpack(redis.call('HMGET', key.hold, 'epoch', 'amount'))
held = tonumber(held or '')
if not epoch or hold_epoch ~= epoch or not held then return 0 end
local freed = held - tonumber(arg.amount)
if freed <= 0 then return 0 end

for i = 1, #each do
  if redis.call('HGET', each.budget[i], 'epoch') == epoch then
    redis.call('HINCRBY', each.budget[i], 'held', whole(-freed))
  end
end
redis.call('HSET', key.hold, 'amount', whole(held - freed))
return freed
