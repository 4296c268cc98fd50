#!lua flags=allow-oom
-- refund: gives a charge back, or a part of it, as an entry of its own in the usage stream.
-- A charge is given back once. From then on it is void, should it arrive again. So is a charge that Redis does not
-- know: it was never counted, or Redis lost it, and nothing is given back. Nor is a charge of a grant that has had too
-- much back.
-- KEYS     partition, charge, usage: the stream; each: budget
-- ARGV     refund_id; most_uses and most_cost: to give back, cost in microdollars; grant_id; budget_ids:
--          comma-separated; record: of the call; was_sent: 1, or 0 where the server surely never got the call
-- Returns  1, or 0 when nothing was given back: also where the charge drew on another list of budgets
-- include: whole, give-back, stream-id, late
local charged_uses, charged_cost, charged_budgets = unpack(redis.call('HMGET', key.charge, 'uses', 'amount', 'budgets'))
if charged_budgets and charged_budgets ~= arg.budget_ids then return 0 end
local epoch = redis.call('HGET', key.partition, 'epoch')
local budgets = {}
for i = 1, #each do
  local budget_epoch, max_uses, used, cost_limit, returned = unpack(redis.call('HMGET', each.budget[i], 'epoch',
    'max_uses', 'used', 'cost_limit', 'returned'))
  -- A budget of another epoch is not counted in: it will be loaded from the ledger, and from what is noted as late.
  budgets[i] = budget_epoch and budget_epoch == epoch and {max_uses = tonumber(max_uses), used = tonumber(used),
    cost_limit = tonumber(cost_limit), returned = tonumber(returned or '0')}
end

-- Its places stay taken until the call ends (see `settle`).
redis.call('HDEL', key.charge, 'uses', 'amount')
redis.call('HSET', key.charge, 'done', '1')
if redis.call('HEXISTS', key.charge, 'places') == 0 then redis.call('EXPIRE', key.charge, 300) end
if not charged_uses then return 0 end
local uses = math.min(tonumber(arg.most_uses), tonumber(charged_uses))
local cost = math.min(tonumber(arg.most_cost), tonumber(charged_cost))
local weight = 0
if arg.was_sent == '1' then weight = weigh_give_back(budgets, uses, cost) end
if not weight then return 0 end

if weight > 0 then redis.call('HINCRBY', each.budget[1], 'returned', whole(weight)) end
uses, cost = whole(0 - uses), whole(0 - cost)
for i = 1, #each do
  if budgets[i] then
    redis.call('HINCRBY', each.budget[i], 'used', uses)
    redis.call('HINCRBY', each.budget[i], 'settled', cost)
  end
end
local entry_id = redis.call('XADD', key.usage, '*', 'hold', arg.refund_id, 'grant', arg.grant_id, 'budgets',
  arg.budget_ids, 'uses', uses, 'cost', cost, 'outcome', 'refunded', 'record', arg.record)
for i = 1, #each do
  if epoch and not budgets[i] then note_late(each.budget[i], epoch, entry_id, uses, cost) end
end
return 1
