#!lua flags=allow-oom
-- narrow: lowers what a running call holds, because its provider has stated a part of what it costs. It never raises it,
-- so the same again changes nothing.
-- KEYS     partition, hold; each: budget
-- ARGV     amount: microdollars
-- Returns  how many microdollars it gave back
-- include: whole
-- A hold of another epoch is left alone: the budgets of this one may count it at what it held when they were opened.
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
