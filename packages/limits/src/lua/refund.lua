#!lua flags=allow-oom
-- refund: gives back what a charge took, or a part of it, as an entry of its own in the usage stream.
-- A charge is given back once. From then on it is void, should it arrive again. So is a charge that Redis does not
-- know: it was never counted, or Redis lost it, and nothing is given back.
-- KEYS     partition, charge, usage: the stream; each: budget
-- ARGV     refund_id; most_uses and most_cost: to give back, cost in microdollars; grant_id; budget_ids:
--          comma-separated; record: of the call
-- Returns  1, or 0 when nothing was given back
-- include: whole
local charged_uses, charged_cost = unpack(redis.call('HMGET', key.charge, 'uses', 'amount'))
redis.call('DEL', key.charge)
redis.call('HSET', key.charge, 'done', '1')
redis.call('EXPIRE', key.charge, 300)
if not charged_uses then return 0 end

local uses = whole(0 - math.min(tonumber(arg.most_uses), tonumber(charged_uses)))
local cost = whole(0 - math.min(tonumber(arg.most_cost), tonumber(charged_cost)))
local epoch = redis.call('HGET', key.partition, 'epoch')
for i = 1, #each do
  -- A budget of another epoch is not counted in: it will be opened from the ledger and the stream.
  if epoch and redis.call('HGET', each.budget[i], 'epoch') == epoch then
    redis.call('HINCRBY', each.budget[i], 'used', uses)
    redis.call('HINCRBY', each.budget[i], 'settled', cost)
  end
end
redis.call('XADD', key.usage, '*', 'hold', arg.refund_id, 'grant', arg.grant_id, 'budgets', arg.budget_ids,
  'uses', uses, 'cost', cost, 'outcome', 'refunded', 'record', arg.record)
return 1
