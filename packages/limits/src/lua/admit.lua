-- admit: count a call's uses and hold its worst cost in every pot it draws on, or say why not.
-- KEYS  1 partition, 2 grant, 3 credential, 4 hold, 5 leases, 6 usage stream, 7… pots
-- ARGV  1 hold id, 2 lease in ms, 3 uses, 4 microdollars to hold ('' when the cost has no known bound),
--       5 most entries of stream and leases together, 6 grant id, 7 pot ids (comma), 8 call record
-- Asking again with the same hold id counts nothing: a Cluster client sends again when a node goes away.
-- Figures are returned as text: clients' integer parsers are not exact up to 2^53 - 1.
-- Returns {'ok', epoch, credential version, uses left or -1, microdollars left or -1}
--      or {'closed'} {'backlog'} {'unknown'} {'revoked'} {'credential_revoked'}
--      or {'uses_exhausted', limit, used}
--      or {'cost_limit_reached' | 'cost_held' | 'cost_limit_too_low', limit, settled, held}
local partition = redis.call('HMGET', KEYS[1], 'epoch', 'state')
local epoch = partition[1]
if not epoch or partition[2] ~= 'open' then return {'closed'} end

local grant = redis.call('HMGET', KEYS[2], 'epoch', 'revoked')
if grant[2] then return {'revoked'} end
if grant[1] ~= epoch then return {'unknown'} end
local credential = redis.call('HMGET', KEYS[3], 'epoch', 'version', 'revoked')
if credential[1] ~= epoch then return {'unknown'} end
if credential[3] then return {'credential_revoked'} end

if redis.call('XLEN', KEYS[6]) + redis.call('ZCARD', KEYS[5]) >= tonumber(ARGV[5]) then return {'backlog'} end

local again = redis.call('EXISTS', KEYS[4]) == 1
local uses, amount = tonumber(ARGV[3]), tonumber(ARGV[4]) or 0
if again then uses, amount = 0, 0 end
local usesLeft, costLeft = -1, -1
local function lower(left, mine)
  if left < 0 or mine < left then return mine end
  return left
end
local function text(figure) return string.format('%.0f', figure) end

for i = 7, #KEYS do
  local pot = redis.call('HMGET', KEYS[i], 'epoch', 'max_uses', 'used', 'cost_limit', 'settled', 'held')
  if pot[1] ~= epoch then return {'unknown'} end
  local maxUses, used = tonumber(pot[2]), tonumber(pot[3])
  if maxUses >= 0 then
    if used + uses > maxUses then return {'uses_exhausted', pot[2], pot[3]} end
    usesLeft = lower(usesLeft, maxUses - used - uses)
  end
  local limit, settled, held = tonumber(pot[4]), tonumber(pot[5]), tonumber(pot[6])
  if limit >= 0 then
    if settled + held + amount > limit then
      local why = 'cost_held'
      if settled >= limit then why = 'cost_limit_reached'
      elseif settled + amount > limit then why = 'cost_limit_too_low' end
      return {why, pot[4], pot[5], pot[6]}
    end
    costLeft = lower(costLeft, limit - settled - held - amount)
  end
end

local answer = {'ok', epoch, credential[2], text(usesLeft), text(costLeft)}
if again then return answer end
for i = 7, #KEYS do
  redis.call('HINCRBY', KEYS[i], 'used', ARGV[3])
  if amount > 0 then redis.call('HINCRBY', KEYS[i], 'held', ARGV[4]) end
end
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])
redis.call('ZADD', KEYS[5], string.format('%.0f', ends), ARGV[1])
redis.call('HSET', KEYS[4], 'epoch', epoch, 'uses', ARGV[3], 'amount', ARGV[4], 'grant', ARGV[6], 'pots', ARGV[7],
  'record', ARGV[8])
return answer
