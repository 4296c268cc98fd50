#!lua flags=allow-oom
-- settle: ends a hold: replaces what was held by what the call cost, and appends the call to the usage stream.
-- Settling twice changes nothing. A hold whose lease ran out is settled in full, and that is final.
-- KEYS     partition, hold, leases, usage: the stream, survivors; each: budget
-- ARGV     hold_id; mode: settle, expire, or leave: free the places of a charged call; uses; cost: microdollars, ''
--          when not known; epoch: of the admission, '' when it was never answered; grant_id; budget_ids:
--          comma-separated; record: of the call; last_call: how the call failed, '' if it did not; used_tokens: of input
--          and output together, '' when not known, so that those held are charged; was_sent: 1, or 0 where the provider
--          surely never got the call (expire takes all but hold_id and mode from the hold itself)
-- Returns  settled: the least of the first and of visible budgets: uses_left, microusd_left, each absent where there is no limit;
--            is_kept: whether the grant has had too much back, so that the call keeps its uses and its hold
--          gone, not_due
--          other_budgets: the hold draws on another list, and nothing was changed
-- include: clock, whole, token-bucket, give-back, stream-id, late
local epoch = redis.call('HGET', key.partition, 'epoch')
local hold_epoch, hold_uses, hold_amount, hold_grant, hold_budgets, hold_record, hold_places, done, token_worst, token_since,
  token_hold =
  unpack(redis.call('HMGET', key.hold, 'epoch', 'uses', 'amount', 'grant', 'budgets', 'record', 'places', 'done',
    'token_worst', 'token_since', 'token_hold'))
local is_charge = hold_epoch and not hold_grant
local is_expiry = arg.mode == 'expire'
local held_uses, held_amount, held_tokens = tonumber(hold_uses) or 0, tonumber(hold_amount) or 0, tonumber(token_hold or '0')

-- The hold ends for good, and an admission that is still on its way is void.
local function note_done()
  redis.call('HSET', key.hold, 'done', '1')
  redis.call('EXPIRE', key.hold, 86400)
end

local function free_places()
  if hold_epoch ~= epoch then redis.call('HDEL', key.survivors, arg.hold_id) end
  if hold_places and redis.call('HGET', each.budget[1], 'epoch') == epoch then
    redis.call('HINCRBY', each.budget[1], 'active', '-' .. hold_places)
  end
end

-- The reply where there is nothing to settle.
local function why_not()
  if (done and not is_charge) or (arg.mode == 'leave' and not is_charge) then return reply.gone end
  -- Windows follow one another, so that a gateway may know a later one than the call was admitted in.
  if hold_grant and not is_expiry and arg.budget_ids ~= hold_budgets then return reply.other_budgets end
  if is_expiry then
    local ends = redis.call('ZSCORE', key.leases, arg.hold_id)
    if not ends or not hold_epoch then
      redis.call('ZREM', key.leases, arg.hold_id)
      return reply.gone
    end
    if tonumber(ends) > now_ms() then return reply.not_due end
  elseif not hold_epoch then
    -- Settled already, unless the partition has lost data since this call was admitted.
    if arg.epoch == epoch then return reply.gone end
    note_done()
    -- Redis knows of no admission, so there is nothing to write down.
    if arg.epoch == '' then return reply.gone end
  end
end

-- A budget of this epoch counts every hold there is: those admitted since it was loaded, and the survivors, by `load`.
-- A budget of another epoch is not counted in: it will be loaded from the ledger, and from what is noted as late.
local function read_budget(i)
  local budget_epoch, max_uses, used, cost_limit, settled, held, returned, last_call, window, token_limit, visible =
    unpack(redis.call('HMGET', each.budget[i], 'epoch', 'max_uses', 'used', 'cost_limit', 'settled', 'held', 'returned',
      'last_call', 'window', 'token_limit', 'visible'))
  return budget_epoch and budget_epoch == epoch and {max_uses = tonumber(max_uses), used = tonumber(used),
    cost_limit = tonumber(cost_limit), settled = tonumber(settled), held = tonumber(held),
    returned = tonumber(returned or '0'), last_call = last_call, window = window, is_visible = i == 1 or visible,
    token_limit = tonumber(token_limit or '-1')}
end

-- Tokens by the minute that were not used. A hold of another epoch may have taken them from a bucket that is gone.
local function give_tokens_back()
  local rate, level, at = unpack(redis.call('HMGET', each.budget[1], 'token_rate', 'token_level', 'token_at'))
  rate, level, at = tonumber(rate), tonumber(level), tonumber(at)
  -- A budget that Redis lost alone was loaded again with a full bucket. Or the limit was removed.
  if not level or not rate then return end
  local now = now_ms()
  local parts = parts_now(rate, level, at, now) +
    parts_back(rate, tonumber(token_worst), tonumber(arg.used_tokens), tonumber(token_since), at, now)
  -- A debt is one minute's tokens at most.
  parts = math.max(math.min(parts, rate * PARTS), 0 - rate * PARTS)
  redis.call('HSET', each.budget[1], 'token_level', whole(parts), 'token_at', whole(now))
end

-- A limit may have been lowered below what is used: then nothing is left.
local function least(known, limit, taken)
  if limit < 0 then return known end
  return math.min(known or limit, math.max(limit - taken, 0))
end

local function settle_budget(i, budget, change, cost, tokens)
  if change ~= 0 then redis.call('HINCRBY', each.budget[i], 'used', whole(change)) end
  if held_amount > 0 then redis.call('HINCRBY', each.budget[i], 'held', '-' .. hold_amount) end
  if (tonumber(cost) or 0) > 0 then redis.call('HINCRBY', each.budget[i], 'settled', cost) end
  if budget.window then
    if held_tokens > 0 then redis.call('HINCRBY', each.budget[i], 'tokens_held', '-' .. token_hold) end
    if tokens > 0 then redis.call('HINCRBY', each.budget[i], 'tokens', whole(tokens)) end
  end
end

-- Appends the call to the stream, and notes it for budgets that are not of this epoch.
local function append(budgets, uses, cost, grant_id, budget_ids, record, tokens)
  local entry = {'hold', arg.hold_id, 'grant', grant_id, 'budgets', budget_ids, 'uses', uses, 'cost', cost,
    'outcome', is_expiry and 'expired' or 'settled', 'record', record}
  if tokens > 0 then
    entry[#entry + 1] = 'tokens'
    entry[#entry + 1] = whole(tokens)
  end
  local entry_id = redis.call('XADD', key.usage, '*', unpack(entry))
  for i = 1, #each do
    if epoch and not budgets[i] then note_late(each.budget[i], epoch, entry_id, uses, cost, whole(tokens)) end
  end
end

local refused = why_not()
if refused then return refused end
if is_charge then
  redis.call('ZREM', key.leases, arg.hold_id)
  free_places()
  redis.call('HDEL', key.hold, 'epoch', 'places', 'budgets')
  redis.call('EXPIRE', key.hold, 300)
  return reply.gone
end
local uses, cost, grant_id, budget_ids, record = arg.uses, arg.cost, arg.grant_id, arg.budget_ids, arg.record
if is_expiry then uses, cost, grant_id, budget_ids, record = hold_uses, hold_amount, hold_grant, hold_budgets, hold_record end

local budgets = {}
for i = 1, #each do budgets[i] = read_budget(i) end
local used_tokens = not is_expiry and tonumber(arg.used_tokens) or nil
local weight = 0
-- A call that was surely never sent gets everything back, however often.
if hold_epoch and not is_expiry and arg.was_sent == '1' then
  weight = weigh_give_back(budgets, held_uses - tonumber(uses), tonumber(cost) == 0 and held_amount or 0,
    used_tokens == 0 and held_tokens or 0)
end
local is_kept = not weight
if is_kept then
  uses = hold_uses
  if tonumber(cost) == 0 and held_amount > 0 then cost = hold_amount end
  if used_tokens == 0 then used_tokens = nil end
end
-- A usage that is not known charges what was held, and none charges more. Without a hold, no limit was known.
local tokens = used_tokens or held_tokens
if held_tokens > 0 then tokens = math.min(tokens, held_tokens) end

redis.call('ZREM', key.leases, arg.hold_id)
if hold_epoch then redis.call('DEL', key.hold) end
if hold_epoch then free_places() end

local change, charged = tonumber(uses) - held_uses, tonumber(cost) or 0
local uses_left, microusd_left
for i = 1, #each do
  local budget = budgets[i]
  if budget then settle_budget(i, budget, change, cost, tokens) end
  if budget and budget.is_visible then
    uses_left = least(uses_left, budget.max_uses, budget.used + change)
    microusd_left = least(microusd_left, budget.cost_limit, budget.settled + charged + budget.held - held_amount)
  end
end
if token_worst and arg.used_tokens ~= '' and not is_kept and budgets[1] and hold_epoch == epoch then give_tokens_back() end
-- The grant's own budget remembers how the last call failed, because later refusals say so.
if budgets[1] and not is_expiry and arg.epoch ~= '' then
  if arg.last_call ~= '' then redis.call('HSET', each.budget[1], 'last_call', arg.last_call)
  elseif budgets[1].last_call then redis.call('HDEL', each.budget[1], 'last_call') end
end
if not is_kept and weight > 0 then redis.call('HINCRBY', each.budget[1], 'returned', whole(weight)) end
-- The gateway refused a call whose admission was never answered. It is given back whole, and is no call of the ledger.
if arg.epoch == '' and not is_expiry then
  note_done()
  return reply.gone
end
append(budgets, uses, cost, grant_id, budget_ids, record, tokens)
return reply.settled{uses_left = uses_left, microusd_left = microusd_left, is_kept = is_kept}
