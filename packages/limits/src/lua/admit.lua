-- admit: count a call's uses and hold its worst cost in every budget it draws on, or say why not. A call of
-- known cost may be charged instead: that is its end, nothing is held, and the stream has it at once.
-- KEYS  1 partition, 2 grant, 3 credential, 4 hold, 5 leases, 6 usage stream, 7… budgets
-- ARGV  1 hold id, 2 lease in ms ('' to charge), 3 uses, 4 most entries of stream and leases together,
--       5 grant id, 6 budget ids (comma), 7 call record, and the worst cost: 8 microdollars of input and fees (''
--       when the cost has no known bound), 9 microdollars per million tokens of output, 10 tokens asked,
--       11 least tokens
-- The output bound is lowered, down to the least, only because of what is settled, never for others' holds.
-- Products stay below 2^53: tokens and rates are clipped by the caller.
-- Calls by the minute are those of the first budget: counted here, never given back. (bucket.lua goes before.)
-- Asking again with the same hold id counts nothing: a Cluster client sends again when a node goes away.
-- Nor does charging no uses and no cost: it only tells whether calls may pass.
-- Figures are returned as text: clients' integer parsers are not exact up to 2^53 - 1.
-- What is left is told of the first budget, the grant's own: what others have left of a budget is not its holder's.
-- Returns {'ok', epoch, credential version, uses left or -1, microdollars left or -1, microdollars held or
--       charged, tokens, calls a minute or -1, calls left now, ms until all of a minute are left}
--      or {'closed'} {'backlog'} {'unknown'} {'revoked'} {'credential_revoked'}
--      or {'rate_limited', calls a minute, calls left now, ms until all are, ms until this call may pass}
--      or {'uses_exhausted', 'own' (the first budget's) or 'shared', limit, used}
--      or {'cost_limit_reached' | 'cost_held' | 'cost_limit_too_low', 'own' or 'shared', limit, settled, held,
--       needed}
local partition = redis.call('HMGET', KEYS[1], 'epoch', 'state')
local epoch = partition[1]
if not epoch or partition[2] ~= 'open' then return {'closed'} end

local grant = redis.call('HMGET', KEYS[2], 'epoch', 'revoked')
if grant[2] then return {'revoked'} end
if grant[1] ~= epoch then return {'unknown'} end
local credential = redis.call('HMGET', KEYS[3], 'epoch', 'version', 'revoked')
if credential[1] ~= epoch then return {'unknown'} end
if credential[3] then return {'credential_revoked'} end

if redis.call('XLEN', KEYS[6]) + redis.call('ZCARD', KEYS[5]) >= tonumber(ARGV[4]) then return {'backlog'} end

local function text(figure) return string.format('%.0f', figure) end
local usesLeft, costLeft = -1, -1

local again = redis.call('EXISTS', KEYS[4]) == 1
local uses = again and 0 or tonumber(ARGV[3])
local limited, own = {}, nil
for i = 7, #KEYS do
  local budget = redis.call('HMGET', KEYS[i], 'epoch', 'max_uses', 'used', 'cost_limit', 'settled', 'held',
    'per_minute', 'level', 'at')
  if budget[1] ~= epoch then return {'unknown'} end
  local whose = i == 7 and 'own' or 'shared'
  local maxUses, used = tonumber(budget[2]), tonumber(budget[3])
  if maxUses >= 0 then
    if uses > 0 and used + uses > maxUses then return {'uses_exhausted', whose, budget[2], budget[3]} end
    if i == 7 then usesLeft = math.max(maxUses - used - uses, 0) end
  end
  -- Beyond 2^53 - 1 a sum is exact nowhere, and soon none that Postgres takes: that is everybody's limit.
  if tonumber(budget[4]) < 0 then budget[4], budget.open = '9007199254740991', true end
  limited[#limited + 1] = budget
  budget.whose = whose
  own = own or budget
end

local perMinute, level, now, full = tonumber(own[7] or '-1'), 0, nil, 0
if perMinute >= 0 then
  local time = redis.call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
  level = bucket(perMinute, tonumber(own[8] or ''), tonumber(own[9] or ''), now)
  local waits = uses > 0 and level < math.min(uses, perMinute)
  local wait = untilHas(perMinute, level, uses)
  if not waits then level = level - uses end
  full = untilHas(perMinute, level, perMinute)
  if waits then
    -- Else all would wait until a clock that went back is where it was.
    if (tonumber(own[9] or '') or 0) > now then redis.call('HSET', KEYS[7], 'at', text(now)) end
    return {'rate_limited', own[7], text(math.max(math.floor(level), 0)), text(full), text(wait)}
  end
end

local fixed, rate = tonumber(ARGV[8]) or 0, tonumber(ARGV[9])
local tokens, least = tonumber(ARGV[10]), tonumber(ARGV[11])
if again then fixed, rate, least = 0, 0, 0 end
-- Rounded up without a fraction: a quotient may be rounded before it is seen to have one, fmod is exact.
local function price(bound)
  local part = math.fmod(bound * rate, 1000000)
  return fixed + (bound * rate - part) / 1000000 + (part > 0 and 1 or 0)
end
local needed = price(least)
-- What costs nothing passes even where a loss of data let others spend more than the limit.
for _, budget in ipairs(price(tokens) > 0 and limited or {}) do
  local room = tonumber(budget[4]) - tonumber(budget[5])
  if needed > 0 and room <= 0 then
    return {'cost_limit_reached', budget.whose, budget[4], budget[5], budget[6], text(needed)}
  end
  if needed > room then return {'cost_limit_too_low', budget.whose, budget[4], budget[5], budget[6], text(needed)} end
  if price(tokens) > room then tokens = math.floor((room - fixed) * 1000000 / rate) end
  while price(tokens) > room do tokens = tokens - 1 end
  -- The quotient may have been rounded down past what is known to fit.
  tokens = math.max(tokens, least)
end
local amount = price(tokens)
for _, budget in ipairs(limited) do
  local left = tonumber(budget[4]) - tonumber(budget[5]) - tonumber(budget[6]) - amount
  if amount > 0 and left < 0 then return {'cost_held', budget.whose, budget[4], budget[5], budget[6], text(amount)} end
  if budget == own and not budget.open then costLeft = math.max(left, 0) end
end

local function admitted(amount, tokens)
  return {'ok', epoch, credential[2], text(usesLeft), text(costLeft), amount, tokens, text(perMinute),
    text(math.max(math.floor(level), 0)), text(full)}
end
if again then
  local hold = redis.call('HMGET', KEYS[4], 'amount', 'tokens')
  return admitted(text(tonumber(hold[1] or '') or 0), hold[2] or '0')
end
local charged = ARGV[2] == ''
local answer = admitted(text(amount), text(tokens))
if charged and uses == 0 and amount == 0 then return answer end
if now then redis.call('HSET', KEYS[7], 'level', string.format('%.17g', level), 'at', text(now)) end
for i = 7, #KEYS do
  redis.call('HINCRBY', KEYS[i], 'used', ARGV[3])
  if amount > 0 then redis.call('HINCRBY', KEYS[i], charged and 'settled' or 'held', text(amount)) end
end
if charged then
  redis.call('XADD', KEYS[6], '*', 'hold', ARGV[1], 'grant', ARGV[5], 'budgets', ARGV[6], 'uses', ARGV[3],
    'cost', text(amount), 'outcome', 'settled', 'record', ARGV[7])
  -- For as long as the call may be sent again, or given back by `refund`.
  redis.call('HSET', KEYS[4], 'uses', ARGV[3], 'amount', text(amount))
  redis.call('EXPIRE', KEYS[4], 300)
  return answer
end
local time = redis.call('TIME')
local ends = time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[2])
redis.call('ZADD', KEYS[5], text(ends), ARGV[1])
redis.call('HSET', KEYS[4], 'epoch', epoch, 'uses', ARGV[3], 'amount', ARGV[8] == '' and '' or text(amount),
  'tokens', text(tokens), 'grant', ARGV[5], 'budgets', ARGV[6], 'record', ARGV[7])
return answer
