#!lua flags=allow-oom
-- narrow: lowers the hold of a running call, once its provider has stated the input. It never raises a hold, so running it
-- again changes nothing.
-- KEYS     partition, hold; each: budget
-- ARGV     amount: microdollars; budget_ids: comma-separated
-- Returns  how many microdollars it gave back
-- include: whole
-- It skips a hold that draws on another list of budgets, and one of another epoch: budgets of this epoch may count that hold at the amount it had when they were loaded.
local epoch = redis.call('HGET', key.partition, 'epoch')
local hold_epoch, held, hold_budgets = unpack(redis.call('HMGET', key.hold, 'epoch', 'amount', 'budgets'))
held = tonumber(held or '')
if not epoch or hold_epoch ~= epoch or not held or hold_budgets ~= arg.budget_ids then return 0 end
local freed = held - tonumber(arg.amount)
if freed <= 0 then return 0 end

for i = 1, #each do
  if redis.call('HGET', each.budget[i], 'epoch') == epoch then
    redis.call('HINCRBY', each.budget[i], 'held', whole(-freed))
  end
end
redis.call('HSET', key.hold, 'amount', whole(held - freed))
return freed
