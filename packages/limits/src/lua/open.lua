-- open: put a grant, its credential and its budgets into Redis from what Postgres says; changes nothing
-- that is there already. A budget starts at what the ledger knows, plus the entries it has not reached, plus the
-- holds that outlived a loss of data.
-- KEYS  1 partition, 2 grant, 3 credential, 4 usage stream, 5 survivors, 6… budgets
-- ARGV  1 epoch, 2 last stream id in the ledger, 3 grant document, 4 end of the grant's keys (Unix ms),
--       5 credential version, 6 sealed credential, then for each budget: id, max uses or -1, used,
--       cost limit or -1, settled, calls a minute or -1, 1 when it ends with the grant
-- Returns {'ok'} {'revoked'} {'stale'}: read Postgres again {'closed'}
local function split(id)
  local ms, seq = string.match(id, '^(%d+)-(%d+)$')
  return tonumber(ms), tonumber(seq)
end
local function before(a, b)
  local ams, aseq = split(a)
  local bms, bseq = split(b)
  return ams < bms or (ams == bms and aseq < bseq)
end

local partition = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'drained')
local epoch = ARGV[1]
if not partition[1] or partition[2] ~= 'open' then return {'closed'} end
-- The ledger went on since Postgres was read: entries may be gone from the stream.
if partition[1] ~= epoch or before(ARGV[2], partition[3]) then return {'stale'} end
if redis.call('HEXISTS', KEYS[2], 'revoked') == 1 then return {'revoked'} end
if redis.call('HEXISTS', KEYS[3], 'revoked') == 1 then return {'revoked'} end

local fresh = {}
for i = 6, #KEYS do
  local at = 7 + (i - 6) * 7
  if redis.call('HGET', KEYS[i], 'epoch') ~= epoch then
    fresh[ARGV[at]] =
      {key = KEYS[i], at = at, used = tonumber(ARGV[at + 2]), settled = tonumber(ARGV[at + 4]), held = 0}
  end
end
if next(fresh) then
  for _, entry in ipairs(redis.call('XRANGE', KEYS[4], '(' .. ARGV[2], '+')) do
    local field = {}
    for i = 1, #entry[2], 2 do field[entry[2][i]] = entry[2][i + 1] end
    for id in string.gmatch(field.budgets, '[^,]+') do
      local budget = fresh[id]
      if budget then
        budget.used = budget.used + tonumber(field.uses)
        budget.settled = budget.settled + (tonumber(field.cost) or 0)
      end
    end
  end
  for _, survivor in ipairs(redis.call('HVALS', KEYS[5])) do
    local uses, amount, budgets = string.match(survivor, '^(%d+) (%d+) (.*)$')
    for id in string.gmatch(budgets, '[^,]+') do
      local budget = fresh[id]
      if budget then
        budget.used = budget.used + tonumber(uses)
        budget.held = budget.held + tonumber(amount)
      end
    end
  end
end
for _, budget in pairs(fresh) do
  redis.call('DEL', budget.key)
  redis.call('HSET', budget.key, 'epoch', epoch, 'from', ARGV[2], 'max_uses', ARGV[budget.at + 1], 'used', string.format('%.0f', budget.used),
    'cost_limit', ARGV[budget.at + 3], 'settled', string.format('%.0f', budget.settled),
    'held', string.format('%.0f', budget.held), 'per_minute', ARGV[budget.at + 5])
  if ARGV[budget.at + 6] == '1' then redis.call('PEXPIREAT', budget.key, ARGV[4]) end
end

local known = redis.call('HMGET', KEYS[3], 'epoch', 'version')
local version = tonumber(known[2] or '') or 0
-- A later version came from Postgres after this one was read there (see `replace`): it stays, in any epoch.
if version < tonumber(ARGV[5]) or (version == tonumber(ARGV[5]) and known[1] ~= epoch) then
  redis.call('HSET', KEYS[3], 'version', ARGV[5], 'sealed', ARGV[6])
end
redis.call('HSET', KEYS[3], 'epoch', epoch)
local ends = redis.call('PEXPIRETIME', KEYS[3])
if ends ~= -1 and ends < tonumber(ARGV[4]) or not known[1] then redis.call('PEXPIREAT', KEYS[3], ARGV[4]) end

redis.call('HSET', KEYS[2], 'epoch', epoch, 'doc', ARGV[3])
redis.call('PEXPIREAT', KEYS[2], ARGV[4])
return {'ok'}
