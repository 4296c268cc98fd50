#!lua
-- admit: counts a call's uses and holds its worst cost in every budget it draws on, or says why not. A call of known
-- cost is charged instead: nothing is held, and the stream has the call at once.
-- KEYS     partition, account: of the grant, grant, credential, hold, leases, usage: the stream; each: budget
-- ARGV     mode: 'hold', 'charge', or 'check' to count nothing; hold_id; lease_ms: of the hold, or of a charge's places; uses;
--          calls: that count for the rate limit; backlog_max: entries of stream and leases together that need no room;
--          grant_id; budget_ids: comma-separated; record: of the call; places: calls under way that it adds. The worst cost: fixed: microdollars of input and fees, '' when the cost has no known bound; rate: microdollars per
--          million tokens of output; tokens: asked for; least_tokens. worst_tokens: of input and output together, '' when
--          they have no known bound
-- Returns  admitted: epoch, credential_version, held_microusd: or charged, tokens; the least of the first and of visible budgets:
--            uses_left, microusd_left, each absent where there is no limit; is_returnable: whether a refused call of this grant would
--            now get everything back; places: that it takes, 0 where there is no limit; rate_limits: see `rates`;
--            limits_cost, limits_tokens: whether any budget does
--          rate_limited: rate_limit: the one that refuses, wait_ms: until this call may pass, needed: tokens of this call
--          batch_over_rate: rate_limit: the one whose window never holds so many calls, needed: calls of this batch
--          concurrency_limited: limit, active: calls under way, needed: places of this call
--          token_rate_too_low: limit, needed: it can never pass
--          token_limit_reached, token_limit_too_low, tokens_held: of, needed: tokens of this call, last_call
--          is_visible in the refusals of a budget: whether the holder may learn its figures; ends_ms: of its window, then; limit,
--            used: of tokens
--          uses_exhausted: of: the budget's place in the list, limit, used, last_call: how the last call of the grant
--            failed, absent if it did not
--          cost_limit_reached, cost_held, cost_limit_too_low: of, limit_microusd, settled_microusd, held_microusd,
--            needed_microusd, last_call
--          closed, backlog, unknown, revoked, credential_revoked, suspended
--          expired: the grant's end was moved, and has passed
--          unbounded: the cost or the tokens have no known bound, and a budget limits them: read Postgres again
--          another_window: now_ms: a window of a budget has ended or not begun by this time: read Postgres again
-- include: clock, whole, bucket, token-bucket, give-back, window, room, rates
-- The first budget is the grant's own. A holder must not learn how much of a shared budget is left, unless it is visible.
-- Rate limits are those of the first budget. Calls are counted here and never given back. The most tokens of a call are taken here,
-- and `settle` gives back what was not used. Its calls under way are `active`: a place is taken here and freed with its hold. A
-- charged call has a hold of nothing but its places.
-- Tokens in all are those of windows: the most is held here, and `settle` puts what was used in its place.
-- The output bound is lowered, down to the least, only because of what is settled, never for others' holds. A budget with a
-- window lowers it only if holders may see the budget: else from the lowered bound a holder could read how much others have left.
-- Products stay below 2^53: the caller clips tokens and rates.
-- The same hold id again counts nothing: a Cluster client sends a command again when a node goes away.
-- A charge of no uses and no cost counts only its calls for the rate limit, and those again when it is sent again.
-- A function that may refuse the call returns the refusal first, nil where there is none.
local is_check, is_charge = arg.mode == 'check', arg.mode == 'charge'
local again = not is_check and redis.call('EXISTS', key.hold) == 1
local uses, calls = again and 0 or tonumber(arg.uses), again and 0 or tonumber(arg.calls)
local worst_tokens = again and 0 or tonumber(arg.worst_tokens)
local fixed, rate, least = tonumber(arg.fixed) or 0, tonumber(arg.rate), tonumber(arg.least_tokens)
if again then fixed, rate, least = 0, 0, 0 end

-- Whether any budget has such a limit.
local limits_cost, limits_tokens, has_window = false, false, false

local time
local function now()
  time = time or now_ms()
  return time
end

local function last_call() return redis.call('HGET', each.budget[1], 'last_call') end

-- Why no call of this grant passes now; the epoch, and the version of the credential.
local function why_none()
  local epoch, state = unpack(redis.call('HMGET', key.partition, 'epoch', 'state'))
  if not epoch or state ~= 'open' then return reply.closed end
  if redis.call('HGET', key.account, 'suspended') == '1' then return reply.suspended end
  local grant_epoch, revoked, ends = unpack(redis.call('HMGET', key.grant, 'epoch', 'revoked', 'ends'))
  if revoked then return reply.revoked end
  if grant_epoch ~= epoch then return reply.unknown end
  local credential_epoch, version, credential_revoked =
    unpack(redis.call('HMGET', key.credential, 'epoch', 'version', 'revoked'))
  if credential_epoch ~= epoch then return reply.unknown end
  if credential_revoked then return reply.credential_revoked end
  if ends and now() >= tonumber(ends) then return reply.expired end
  local backlog = redis.call('XLEN', key.usage) + redis.call('ZCARD', key.leases)
  if backlog >= tonumber(arg.backlog_max) and not has_room() then return reply.backlog end
  return nil, epoch, version
end

-- The fields that every budget has, after its epoch: they come first in `found`.
local function as_budget(place, found, visible)
  local cost_limit, window = tonumber(found[4]), found[7]
  limits_cost, has_window = limits_cost or cost_limit >= 0, has_window or window
  return {
    place = place,
    max_uses = tonumber(found[2]),
    used = tonumber(found[3]),
    limits_cost = cost_limit >= 0,
    -- Beyond 2^53 - 1 no sum is exact, and Postgres takes hardly more: that is the limit of every budget.
    limit = cost_limit >= 0 and cost_limit or 9007199254740991,
    settled = tonumber(found[5]),
    held = tonumber(found[6]),
    window = window,
    is_visible = place == 1 or visible,
    ends_ms = visible and tonumber(string.match(window or '', ' (%d+)$') or '') or nil,
    lowers = not window or visible,
  }
end

-- The own budget, and the limits that only it has. One command reads all of it: a second one would cost every call some microseconds.
local function read_own(epoch)
  local found = redis.call('HMGET', each.budget[1], 'epoch', 'max_uses', 'used', 'cost_limit', 'settled', 'held', 'window',
    'returned', 'concurrent', 'active', 'per_minute', 'level', 'at', 'per_day', 'per_day_level', 'per_day_at', 'token_rate',
    'token_level', 'token_at')
  if found[1] ~= epoch then return nil end
  return as_budget(1, found, nil), unpack(found, 8)
end

local function read_shared(place, epoch)
  local found = redis.call('HMGET', each.budget[place], 'epoch', 'max_uses', 'used', 'cost_limit', 'settled', 'held', 'window',
    'visible', 'token_limit', 'tokens', 'tokens_held')
  if found[1] ~= epoch then return nil end
  local shared = as_budget(place, found, found[8])
  shared.token_limit = tonumber(found[9] or '-1')
  shared.limits_tokens = shared.token_limit >= 0
  limits_tokens = limits_tokens or shared.limits_tokens
  shared.tokens, shared.tokens_held = tonumber(found[10] or '0'), tonumber(found[11] or '0')
  return shared
end

-- Why the call may not draw on a budget, whatever it costs. The gateway may remember the grant from before a limit.
local function why_no_use(budget)
  if not again and budget.window and not is_within(budget.window, now()) then return reply.another_window{now_ms = now()} end
  if uses > 0 and budget.max_uses >= 0 and budget.used + uses > budget.max_uses then
    return reply.uses_exhausted{of = budget.place, limit = budget.max_uses, used = budget.used, last_call = last_call(),
      is_visible = budget.is_visible, ends_ms = budget.ends_ms}
  end
  if budget.limits_cost and arg.fixed == '' and not again then return reply.unbounded end
  if budget.limits_tokens and not worst_tokens then return reply.unbounded end
end

-- Takes the calls from one rate-limit bucket of the grant's own budget. `taken` gets its text, and its level to write.
local function take_calls(taken, name, window_ms, limit, level, at, level_field, at_field)
  limit, at = tonumber(limit or '-1'), tonumber(at or '')
  if limit < 0 then return nil end
  local left, text, wait_ms = take_from_bucket(name, window_ms, limit, tonumber(level or ''), at, calls, now())
  -- Otherwise all calls would wait until a clock that went back has caught up.
  if wait_ms and not is_check and (at or 0) > now() then redis.call('HSET', each.budget[1], at_field, whole(now())) end
  if wait_ms == NEVER then return reply.batch_over_rate{rate_limit = text, needed = calls} end
  if wait_ms then return reply.rate_limited{rate_limit = text, wait_ms = wait_ms, needed = nil} end
  taken.text = taken.text .. text
  taken.levels = taken.levels or {}
  for _, part in ipairs({level_field, string.format('%.17g', left), at_field, whole(now())}) do
    taken.levels[#taken.levels + 1] = part
  end
end

-- Takes the most tokens of the call out of the own budget's tokens by the minute. `taken` gets their text, and their level to write.
local function take_tokens(taken, limit, level, at)
  limit, at = tonumber(limit or ''), tonumber(at or '')
  if not limit then return nil end
  limits_tokens = true
  if not worst_tokens then return reply.unbounded end
  if worst_tokens > limit then return reply.token_rate_too_low{limit = limit, needed = worst_tokens} end
  local parts = parts_now(limit, tonumber(level or ''), at, now())
  local missing = worst_tokens * PARTS - parts
  -- A debt lets no call pass that uses tokens, and any that uses none.
  local lacks = worst_tokens > 0 and missing > 0
  if not lacks then parts = parts - worst_tokens * PARTS end
  local text = rate_text('tokens_per_minute', limit, parts / PARTS, math.ceil((limit * PARTS - parts) / limit))
  if lacks then
    -- As for calls: otherwise all would wait until a clock that went back has caught up.
    if not is_check and (at or 0) > now() then redis.call('HSET', each.budget[1], 'token_at', whole(now())) end
    return reply.rate_limited{rate_limit = text, wait_ms = math.ceil(missing / limit), needed = worst_tokens}
  end
  taken.text, taken.token_parts = taken.text .. text, parts
end

-- Why the call's tokens are not to be had from the budgets' windows.
local function lack_of_tokens(budget)
  local room = budget.token_limit - budget.tokens
  if worst_tokens <= room - budget.tokens_held then return nil end
  if room <= 0 then
    return reply.token_limit_reached{of = budget.place, needed = worst_tokens, last_call = last_call(),
      is_visible = budget.is_visible, ends_ms = budget.ends_ms, limit = budget.token_limit, used = budget.tokens}
  end
  if worst_tokens > room then
    return reply.token_limit_too_low{of = budget.place, needed = worst_tokens, last_call = last_call(),
      is_visible = budget.is_visible, ends_ms = budget.ends_ms, limit = budget.token_limit, used = budget.tokens}
  end
  return reply.tokens_held{of = budget.place, needed = worst_tokens, last_call = last_call(),
    is_visible = budget.is_visible, ends_ms = budget.ends_ms, limit = budget.token_limit, used = budget.tokens}
end

-- Rounded up without a fraction: a quotient may be rounded before its fraction is seen, but fmod is exact.
local function price(bound)
  local part = math.fmod(bound * rate, 1000000)
  return fixed + (bound * rate - part) / 1000000 + (part > 0 and 1 or 0)
end

-- Why a budget cannot pay the call; the output bound that it can pay. A call that costs nothing passes even where a loss of data
-- let others spend more than the limit.
local function lower(budget, tokens)
  local room = budget.limit - budget.settled
  local needed = price(budget.lowers and least or tokens)
  if needed > 0 and room <= 0 then
    return reply.cost_limit_reached{of = budget.place, limit_microusd = budget.limit,
      settled_microusd = budget.settled, held_microusd = budget.held, needed_microusd = needed,
      last_call = last_call(), is_visible = budget.is_visible, ends_ms = budget.ends_ms}
  end
  if needed > room then
    return reply.cost_limit_too_low{of = budget.place, limit_microusd = budget.limit,
      settled_microusd = budget.settled, held_microusd = budget.held, needed_microusd = needed,
      last_call = last_call(), is_visible = budget.is_visible, ends_ms = budget.ends_ms}
  end
  if price(tokens) > room then tokens = math.floor((room - fixed) * 1000000 / rate) end
  while price(tokens) > room do tokens = tokens - 1 end
  -- The quotient may have been rounded down below a bound that fits.
  return nil, math.max(tokens, least)
end

-- Those that lower nothing judge the bound that the others leave.
local function lower_for_all(budgets)
  local refused, tokens = nil, tonumber(arg.tokens)
  if price(tokens) == 0 then return nil, tokens end
  for _, lowers in ipairs({true, false}) do
    for _, budget in ipairs(budgets) do
      if (not budget.lowers) ~= lowers then
        refused, tokens = lower(budget, tokens)
        if refused then return refused end
      end
    end
  end
  return nil, tokens
end

-- Why others' holds leave too little; the least of money and uses that is left in the budgets that the holder may see.
local function spend(budgets, amount)
  local uses_left, microusd_left
  for _, budget in ipairs(budgets) do
    local left = budget.limit - budget.settled - budget.held - amount
    if amount > 0 and left < 0 then
      return reply.cost_held{of = budget.place, limit_microusd = budget.limit, settled_microusd = budget.settled,
        held_microusd = budget.held, needed_microusd = amount, last_call = last_call(), is_visible = budget.is_visible,
        ends_ms = budget.ends_ms}
    end
    if budget.is_visible and budget.limits_cost then
      microusd_left = math.min(microusd_left or budget.limit, math.max(left, 0))
    end
    if budget.is_visible and budget.max_uses >= 0 then
      uses_left = math.min(uses_left or budget.max_uses, math.max(budget.max_uses - budget.used - uses, 0))
    end
  end
  return nil, microusd_left, uses_left
end

-- Writes what the rate limits and the places took.
local function write_taken(taken, places, epoch)
  if taken.levels and calls > 0 then redis.call('HSET', each.budget[1], unpack(taken.levels)) end
  if places > 0 and not again then
    redis.call('HINCRBY', each.budget[1], 'active', places)
    redis.call('HSET', key.hold, 'epoch', epoch, 'places', places, 'budgets', arg.budget_ids)
    if is_charge then redis.call('ZADD', key.leases, whole(now() + tonumber(arg.lease_ms)), arg.hold_id) end
  end
  if taken.token_parts and worst_tokens > 0 then
    redis.call('HSET', each.budget[1], 'token_level', whole(taken.token_parts), 'token_at', whole(now()))
    redis.call('HSET', key.hold, 'token_worst', whole(worst_tokens), 'token_since', whole(now()))
  end
end

local function count(budgets, amount)
  for i, budget in ipairs(budgets) do
    redis.call('HINCRBY', each.budget[i], 'used', arg.uses)
    if amount ~= '0' then redis.call('HINCRBY', each.budget[i], is_charge and 'settled' or 'held', amount) end
    if budget.window and worst_tokens and worst_tokens > 0 then
      redis.call('HINCRBY', each.budget[i], 'tokens_held', whole(worst_tokens))
    end
  end
end

local function write_charge(amount, places)
  redis.call('XADD', key.usage, '*', 'hold', arg.hold_id, 'grant', arg.grant_id, 'budgets', arg.budget_ids,
    'uses', arg.uses, 'cost', amount, 'outcome', 'settled', 'record', arg.record)
  -- For as long as the call may be sent again, or given back by `refund`.
  redis.call('HSET', key.hold, 'uses', arg.uses, 'amount', amount)
  if has_window then redis.call('HSET', key.hold, 'budgets', arg.budget_ids) end
  if places == 0 then redis.call('EXPIRE', key.hold, 300) end
end

local function write_hold(amount, tokens, epoch)
  redis.call('ZADD', key.leases, whole(now() + tonumber(arg.lease_ms)), arg.hold_id)
  redis.call('HSET', key.hold, 'epoch', epoch, 'uses', arg.uses, 'amount', arg.fixed == '' and '' or amount,
    'tokens', whole(tokens), 'grant', arg.grant_id, 'budgets', arg.budget_ids, 'record', arg.record)
  if has_window and worst_tokens and worst_tokens > 0 then redis.call('HSET', key.hold, 'token_hold', whole(worst_tokens)) end
end

local refused, epoch, credential_version = why_none()
if refused then return refused end

local own, returned, concurrent, active, per_minute, level, at, per_day, per_day_level, per_day_at, token_rate, token_level,
  token_at = read_own(epoch)
if not own then return reply.unknown end
refused = why_no_use(own)
if refused then return refused end
local budgets = {own}
for i = 2, #each do
  budgets[i] = read_shared(i, epoch)
  if not budgets[i] then return reply.unknown end
  refused = why_no_use(budgets[i])
  if refused then return refused end
end

concurrent, active = tonumber(concurrent or '-1'), tonumber(active or '0')
local places = concurrent >= 0 and not again and tonumber(arg.places) or 0
if places > 0 and active + places > concurrent then
  return reply.concurrency_limited{limit = concurrent, active = active, needed = places}
end
local taken = {text = ''}
refused = take_calls(taken, 'calls_per_minute', 60000, per_minute, level, at, 'level', 'at')
  or take_calls(taken, 'calls_per_day', 86400000, per_day, per_day_level, per_day_at, 'per_day_level', 'per_day_at')
  or take_tokens(taken, token_rate, token_level, token_at)
if refused then return refused end

for _, budget in ipairs(budgets) do
  refused = budget.limits_tokens and worst_tokens > 0 and lack_of_tokens(budget)
  if refused then return refused end
end
local tokens
refused, tokens = lower_for_all(budgets)
if refused then return refused end
local amount = price(tokens)
local microusd_left, uses_left
refused, microusd_left, uses_left = spend(budgets, amount)
if refused then return refused end

local counts_nothing = again or is_check or (is_charge and uses == 0 and amount == 0)
if again then
  local held_amount, held_tokens, held_places = unpack(redis.call('HMGET', key.hold, 'amount', 'tokens', 'places'))
  places = tonumber(held_places or '0')
  amount, tokens = tonumber(held_amount or '') or 0, tonumber(held_tokens or '0')
end
if not is_check then write_taken(taken, places, epoch) end
local is_returnable = tonumber(returned or '0') + uses < bound_of(own, 0)
local answer = reply.admitted{epoch = epoch, credential_version = credential_version, uses_left = uses_left,
  microusd_left = microusd_left, held_microusd = amount, tokens = tokens, is_returnable = is_returnable, places = places,
  rate_limits = taken.text, limits_cost = limits_cost, limits_tokens = limits_tokens}
if counts_nothing then return answer end

amount = whole(amount)
count(budgets, amount)
if is_charge then write_charge(amount, places) else write_hold(amount, tokens, epoch) end
return answer
