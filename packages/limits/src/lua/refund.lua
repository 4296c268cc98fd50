-- refund: give back what a charge took, or a part of it, as an entry of its own in the usage stream.
-- A charge is given back once. From then on it is void, should it arrive again; so is one that is not known,
-- which was never counted, or Redis lost it: nothing is given back.
-- KEYS  1 partition, 2 hold of the charge, 3 usage stream, 4… budgets
-- ARGV  1 refund id, 2 most uses and 3 most microdollars to give back, 4 grant id, 5 budget ids (comma), 6 call record
-- Returns 1, or 0 when nothing was given back
local charge = redis.call('HMGET', KEYS[2], 'uses', 'amount')
redis.call('DEL', KEYS[2])
redis.call('HSET', KEYS[2], 'done', '1')
redis.call('EXPIRE', KEYS[2], 300)
if not charge[1] then return 0 end

local function back(most, charged) return string.format('%.0f', 0 - math.min(tonumber(most), tonumber(charged))) end
local uses, cost = back(ARGV[2], charge[1]), back(ARGV[3], charge[2])
local epoch = redis.call('HGET', KEYS[1], 'epoch')
for i = 4, #KEYS do
  -- A budget of another epoch is not counted in: it will be opened from the ledger and the stream.
  if epoch and redis.call('HGET', KEYS[i], 'epoch') == epoch then
    redis.call('HINCRBY', KEYS[i], 'used', uses)
    redis.call('HINCRBY', KEYS[i], 'settled', cost)
  end
end
redis.call('XADD', KEYS[3], '*', 'hold', ARGV[1], 'grant', ARGV[4], 'budgets', ARGV[5], 'uses', uses, 'cost', cost,
  'outcome', 'refunded', 'record', ARGV[6])
return 1
