-- settle: end a hold: replace what was held by what it came to, and append the call to the usage stream.
-- Settling twice changes nothing. A hold whose lease ran out is settled in full, and that is final.
-- KEYS  1 partition, 2 hold, 3 leases, 4 usage stream, 5 survivors, 6… budgets
-- ARGV  1 hold id, 2 'settle' or 'expire', 3 uses, 4 cost in microdollars ('' when not known),
--       5 epoch of the admission ('' when it was never answered), 6 grant id, 7 budget ids (comma), 8 call record
--       ('expire' takes 3 to 8 from the hold itself)
-- Returns {'settled', uses left or -1, microdollars left or -1} of the first budget, {'gone'} {'not_due'}
local id, mode = ARGV[1], ARGV[2]
local hold = redis.call('HMGET', KEYS[2], 'epoch', 'uses', 'amount', 'grant', 'budgets', 'record', 'done')
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if hold[7] then return {'gone'} end

local uses, cost, grant, budgets, record = ARGV[3], ARGV[4], ARGV[6], ARGV[7], ARGV[8]
if mode == 'expire' then
  local ends = redis.call('ZSCORE', KEYS[3], id)
  if not ends or not hold[1] then
    redis.call('ZREM', KEYS[3], id)
    return {'gone'}
  end
  local time = redis.call('TIME')
  if tonumber(ends) > time[1] * 1000 + math.floor(time[2] / 1000) then return {'not_due'} end
  uses, cost, grant, budgets, record = hold[2], hold[3], hold[4], hold[5], hold[6]
elseif not hold[1] then
  -- Settled already, unless the partition has lost data since this call was admitted.
  if ARGV[5] == epoch then return {'gone'} end
  redis.call('HSET', KEYS[2], 'done', '1')
  redis.call('EXPIRE', KEYS[2], 86400)
  -- Never admitted, as far as anyone knows: nothing to write down, but an admission still on its way is void.
  if ARGV[5] == '' then return {'gone'} end
end

-- A budget of this epoch counts every hold there is: those admitted since, and the survivors, by `open`.
local usesLeft, costLeft = -1, -1
local heldUses, heldAmount = tonumber(hold[2]) or 0, tonumber(hold[3]) or 0
for i = 6, #KEYS do
  local budgetEpoch = redis.call('HGET', KEYS[i], 'epoch')
  -- A budget of another epoch is not counted in: it will be opened from the ledger and the stream.
  if budgetEpoch and budgetEpoch == epoch then
    local change = tonumber(uses) - heldUses
    if change ~= 0 then redis.call('HINCRBY', KEYS[i], 'used', string.format('%.0f', change)) end
    if heldAmount > 0 then redis.call('HINCRBY', KEYS[i], 'held', '-' .. hold[3]) end
    if (tonumber(cost) or 0) > 0 then redis.call('HINCRBY', KEYS[i], 'settled', cost) end
    if i == 6 then
      local own = redis.call('HMGET', KEYS[i], 'max_uses', 'used', 'cost_limit', 'settled', 'held')
      if tonumber(own[1]) >= 0 then usesLeft = tonumber(own[1]) - tonumber(own[2]) end
      if tonumber(own[3]) >= 0 then costLeft = tonumber(own[3]) - tonumber(own[4]) - tonumber(own[5]) end
    end
  end
end

redis.call('XADD', KEYS[4], '*', 'hold', id, 'grant', grant, 'budgets', budgets, 'uses', uses, 'cost', cost,
  'outcome', mode == 'expire' and 'expired' or 'settled', 'record', record)
if hold[1] then redis.call('DEL', KEYS[2]) end
if hold[1] and hold[1] ~= epoch then redis.call('HDEL', KEYS[5], id) end
redis.call('ZREM', KEYS[3], id)
return {'settled', string.format('%.0f', usesLeft), string.format('%.0f', costLeft)}
