#!lua
-- admit: counts a call's uses and holds its worst cost in every budget it draws on, or says why not. A call of known
-- cost is charged instead: nothing is held, and the stream has the call at once.
-- KEYS     partition, account: of the grant, grant, credential, hold, leases, usage: the stream; each: budget
-- ARGV     hold_id; lease_ms: '' to charge, 'check' to count nothing; uses; calls: that count for the rate limit;
--          backlog_max: entries of stream and leases together that need no room; grant_id; budget_ids: comma-separated;
--          record: of the call; places: calls under way that it adds; place_ms: their lease where the call is charged. The
--          worst cost: fixed: microdollars of input and fees, '' when the cost has no known bound; rate: microdollars per
--          million tokens of output; tokens: asked for; least_tokens. worst_tokens: of input and output together, '' when
--          they have no known bound
-- Returns  admitted: epoch, credential_version, held_microusd: or charged, tokens; the least of the first and of visible budgets:
--            uses_left, microusd_left, each absent where there is no limit; is_returnable: whether a refused call of this grant would
--            now get everything back; places: that it takes, 0 where there is no limit; rate_limits: see rate_text below;
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
-- include: clock, whole, bucket, token-bucket, give-back, window, room
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
local epoch, state = unpack(redis.call('HMGET', key.partition, 'epoch', 'state'))
if not epoch or state ~= 'open' then return reply.closed end

if redis.call('HGET', key.account, 'suspended') == '1' then return reply.suspended end

local grant_epoch, grant_revoked, ends = unpack(redis.call('HMGET', key.grant, 'epoch', 'revoked', 'ends'))
if grant_revoked then return reply.revoked end
if grant_epoch ~= epoch then return reply.unknown end
local credential_epoch, credential_version, credential_revoked =
  unpack(redis.call('HMGET', key.credential, 'epoch', 'version', 'revoked'))
if credential_epoch ~= epoch then return reply.unknown end
if credential_revoked then return reply.credential_revoked end
if ends and now_ms() >= tonumber(ends) then return reply.expired end

if redis.call('XLEN', key.usage) + redis.call('ZCARD', key.leases) >= tonumber(arg.backlog_max) and not has_room() then
  return reply.backlog
end

local function last_call() return redis.call('HGET', each.budget[1], 'last_call') end
local is_check = arg.lease_ms == 'check'
local again = not is_check and redis.call('EXISTS', key.hold) == 1
local uses = again and 0 or tonumber(arg.uses)
local calls = again and 0 or tonumber(arg.calls)
local places = again and 0 or tonumber(arg.places)
local budgets, uses_left, microusd_left = {}, nil, nil
local is_returnable, now, has_window
local limits_cost, limits_tokens
-- The limits that only the first budget has. One command reads all of it: a second one would cost every call some microseconds.
local concurrent, active, per_minute, level, at, token_rate, token_level, token_at, per_day, per_day_level, per_day_at
for i = 1, #each do
  local is_own = i == 1
  local budget_epoch, max_uses, used, cost_limit, settled, held, returned, window, its_token_limit, its_tokens, its_tokens_held, visible
  if is_own then
    budget_epoch, max_uses, used, cost_limit, settled, held, returned, window, concurrent, active, per_minute, level, at, token_rate,
      token_level, token_at, per_day, per_day_level, per_day_at = unpack(redis.call('HMGET', each.budget[1], 'epoch', 'max_uses',
        'used', 'cost_limit', 'settled', 'held', 'returned', 'window', 'concurrent', 'active', 'per_minute', 'level', 'at',
        'token_rate', 'token_level', 'token_at', 'per_day', 'per_day_level', 'per_day_at'))
  else
    budget_epoch, max_uses, used, cost_limit, settled, held, returned, window, its_token_limit, its_tokens, its_tokens_held, visible =
      unpack(redis.call('HMGET', each.budget[i], 'epoch', 'max_uses', 'used', 'cost_limit', 'settled', 'held', 'returned', 'window',
        'token_limit', 'tokens', 'tokens_held', 'visible'))
  end
  if budget_epoch ~= epoch then return reply.unknown end
  if window and not again then
    has_window = true
    now = now or now_ms()
    if not is_within(window, now) then return reply.another_window{now_ms = now} end
  end
  max_uses, used, cost_limit = tonumber(max_uses), tonumber(used), tonumber(cost_limit)
  local is_visible = is_own or visible
  local ends_ms = visible and tonumber(string.match(window or '', ' (%d+)$') or '') or nil
  if max_uses >= 0 then
    if uses > 0 and used + uses > max_uses then
      return reply.uses_exhausted{of = i, limit = max_uses, used = used, last_call = last_call(),
        is_visible = is_visible, ends_ms = ends_ms}
    end
    if is_visible then uses_left = math.min(uses_left or max_uses, math.max(max_uses - used - uses, 0)) end
  end
  if is_own then
    is_returnable = tonumber(returned or '0') + uses < bound_of({max_uses = max_uses, used = used}, 0)
  end
  -- The gateway may remember the grant from before the limit.
  if cost_limit >= 0 and arg.fixed == '' and not again then return reply.unbounded end
  local token_limit = tonumber(its_token_limit or '-1')
  if token_limit >= 0 and arg.worst_tokens == '' and not again then return reply.unbounded end
  limits_cost = limits_cost or cost_limit >= 0
  limits_tokens = limits_tokens or token_limit >= 0
  budgets[i] = {
    place = i,
    is_window = window,
    is_visible = is_visible,
    ends_ms = ends_ms,
    lowers = not window or visible,
    is_limited = cost_limit >= 0,
    -- Beyond 2^53 - 1 no sum is exact, and Postgres takes hardly more: that is the limit of every budget.
    limit = cost_limit >= 0 and cost_limit or 9007199254740991,
    settled = tonumber(settled),
    held = tonumber(held),
    token_limit = token_limit,
    tokens = tonumber(its_tokens or '0'),
    tokens_held = tonumber(its_tokens_held or '0'),
  }
end

concurrent, active = tonumber(concurrent or '-1'), tonumber(active or '0')
if concurrent < 0 then places = 0 end
if places > 0 and active + places > concurrent then
  return reply.concurrency_limited{limit = concurrent, active = active, needed = places}
end

-- Rate limits that were counted, in one text: the name of each, its limit, how much is left now, and ms until all of it is.
local rates, levels = '', nil
local function rate_text(name, limit, left, reset_ms)
  return string.format('%s %.0f %.0f %.0f ', name, limit, math.max(math.floor(left), 0), reset_ms)
end
-- Counts the calls in the bucket of a window. Returns how long they must wait if they must, and what the bucket says then. More
-- calls than a window holds never pass: a debt would let far more pass in a day than the limit.
local NEVER = -1
local function count_calls(name, window_ms, limit, level, at, level_field, at_field)
  limit = tonumber(limit or '-1')
  if limit < 0 then return nil end
  now, at = now or now_ms(), tonumber(at or '')
  level = level_now(limit, window_ms, tonumber(level or ''), at, now)
  if calls > 0 and level < calls then
    -- Otherwise all calls would wait until a clock that went back has caught up.
    if not is_check and (at or 0) > now then redis.call('HSET', each.budget[1], at_field, whole(now)) end
    return calls > limit and NEVER or ms_until(limit, window_ms, level, calls),
      rate_text(name, limit, level, ms_until(limit, window_ms, level, limit))
  end
  level = level - calls
  rates = rates .. rate_text(name, limit, level, ms_until(limit, window_ms, level, limit))
  levels = levels or {}
  for _, part in ipairs({level_field, string.format('%.17g', level), at_field, whole(now)}) do levels[#levels + 1] = part end
end
local wait_ms, full = count_calls('calls_per_minute', 60000, per_minute, level, at, 'level', 'at')
if not wait_ms then
  wait_ms, full = count_calls('calls_per_day', 86400000, per_day, per_day_level, per_day_at, 'per_day_level', 'per_day_at')
end
if wait_ms == NEVER then return reply.batch_over_rate{rate_limit = full, needed = calls} end
if wait_ms then return reply.rate_limited{rate_limit = full, wait_ms = wait_ms, needed = nil} end

token_rate, token_level, token_at = tonumber(token_rate or ''), tonumber(token_level or ''), tonumber(token_at or '')
local worst_tokens, parts = tonumber(arg.worst_tokens), nil
if token_rate then
  limits_tokens = true
  if again then worst_tokens = 0 end
  if not worst_tokens then return reply.unbounded end
  if worst_tokens > token_rate then return reply.token_rate_too_low{limit = token_rate, needed = worst_tokens} end
  now = now or now_ms()
  parts = parts_now(token_rate, token_level, token_at, now)
  local missing = worst_tokens * PARTS - parts
  -- A debt lets no call pass that uses tokens, and any that uses none.
  local lacks = worst_tokens > 0 and missing > 0
  if not lacks then parts = parts - worst_tokens * PARTS end
  local its_state = rate_text('tokens_per_minute', token_rate, parts / PARTS, math.ceil((token_rate * PARTS - parts) / token_rate))
  if lacks then
    -- As for calls: otherwise all would wait until a clock that went back has caught up.
    if not is_check and (token_at or 0) > now then redis.call('HSET', each.budget[1], 'token_at', whole(now)) end
    return reply.rate_limited{rate_limit = its_state, wait_ms = math.ceil(missing / token_rate), needed = worst_tokens}
  end
  rates = rates .. its_state
end

local needed_tokens = not again and tonumber(arg.worst_tokens) or 0
for _, budget in ipairs(needed_tokens > 0 and budgets or {}) do
  local room = budget.token_limit - budget.tokens
  if budget.token_limit >= 0 and needed_tokens > room - budget.tokens_held then
    if room <= 0 then
      return reply.token_limit_reached{of = budget.place, needed = needed_tokens, last_call = last_call(),
        is_visible = budget.is_visible, ends_ms = budget.ends_ms, limit = budget.token_limit, used = budget.tokens}
    end
    if needed_tokens > room then
      return reply.token_limit_too_low{of = budget.place, needed = needed_tokens, last_call = last_call(),
        is_visible = budget.is_visible, ends_ms = budget.ends_ms, limit = budget.token_limit, used = budget.tokens}
    end
    return reply.tokens_held{of = budget.place, needed = needed_tokens, last_call = last_call(),
        is_visible = budget.is_visible, ends_ms = budget.ends_ms, limit = budget.token_limit, used = budget.tokens}
  end
end

local fixed, rate = tonumber(arg.fixed) or 0, tonumber(arg.rate)
local tokens, least = tonumber(arg.tokens), tonumber(arg.least_tokens)
if again then fixed, rate, least = 0, 0, 0 end
-- Rounded up without a fraction: a quotient may be rounded before its fraction is seen, but fmod is exact.
local function price(bound)
  local part = math.fmod(bound * rate, 1000000)
  return fixed + (bound * rate - part) / 1000000 + (part > 0 and 1 or 0)
end
local least_needed = price(least)
-- A call that costs nothing passes even where a loss of data let others spend more than the limit.
local function judge(budget)
  local room = budget.limit - budget.settled
  local needed = budget.lowers and least_needed or price(tokens)
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
  tokens = math.max(tokens, least)
end
-- Those that lower nothing judge the bound that the others leave.
if price(tokens) > 0 then
  for _, lowers in ipairs({true, false}) do
    for _, budget in ipairs(budgets) do
      local refused = (not budget.lowers) ~= lowers and judge(budget)
      if refused then return refused end
    end
  end
end
local amount = price(tokens)
for _, budget in ipairs(budgets) do
  local left = budget.limit - budget.settled - budget.held - amount
  if amount > 0 and left < 0 then
    return reply.cost_held{of = budget.place, limit_microusd = budget.limit, settled_microusd = budget.settled,
      held_microusd = budget.held, needed_microusd = amount, last_call = last_call(), is_visible = budget.is_visible, ends_ms = budget.ends_ms}
  end
  if budget.is_visible and budget.is_limited then microusd_left = math.min(microusd_left or budget.limit, math.max(left, 0)) end
end

local is_charge = arg.lease_ms == ''
local counts_nothing = again or is_check or (is_charge and uses == 0 and amount == 0)
if again then
  local held_amount, held_tokens, held_places = unpack(redis.call('HMGET', key.hold, 'amount', 'tokens', 'places'))
  places = tonumber(held_places or '0')
  amount, tokens = tonumber(held_amount or '') or 0, tonumber(held_tokens or '0')
end
local answer = reply.admitted{epoch = epoch, credential_version = credential_version, uses_left = uses_left,
  microusd_left = microusd_left, held_microusd = amount, tokens = tokens, is_returnable = is_returnable, places = places,
  rate_limits = rates, limits_cost = limits_cost, limits_tokens = limits_tokens}
if levels and calls > 0 and not is_check then redis.call('HSET', each.budget[1], unpack(levels)) end
if places > 0 and not again and not is_check then
  redis.call('HINCRBY', each.budget[1], 'active', places)
  redis.call('HSET', key.hold, 'epoch', epoch, 'places', places, 'budgets', arg.budget_ids)
  if is_charge then redis.call('ZADD', key.leases, whole((now or now_ms()) + tonumber(arg.place_ms)), arg.hold_id) end
end
if token_rate and worst_tokens > 0 and not is_check then
  redis.call('HSET', each.budget[1], 'token_level', whole(parts), 'token_at', whole(now))
  redis.call('HSET', key.hold, 'token_worst', whole(worst_tokens), 'token_since', whole(now))
end
if counts_nothing then return answer end

amount = whole(amount)
for i = 1, #each do
  redis.call('HINCRBY', each.budget[i], 'used', arg.uses)
  if amount ~= '0' then redis.call('HINCRBY', each.budget[i], is_charge and 'settled' or 'held', amount) end
  if needed_tokens > 0 and budgets[i].is_window then
    redis.call('HINCRBY', each.budget[i], 'tokens_held', whole(needed_tokens))
  end
end
if is_charge then
  redis.call('XADD', key.usage, '*', 'hold', arg.hold_id, 'grant', arg.grant_id, 'budgets', arg.budget_ids,
    'uses', arg.uses, 'cost', amount, 'outcome', 'settled', 'record', arg.record)
  -- For as long as the call may be sent again, or given back by `refund`.
  redis.call('HSET', key.hold, 'uses', arg.uses, 'amount', amount)
  if has_window then redis.call('HSET', key.hold, 'budgets', arg.budget_ids) end
  if places == 0 then redis.call('EXPIRE', key.hold, 300) end
  return answer
end
redis.call('ZADD', key.leases, whole((now or now_ms()) + tonumber(arg.lease_ms)), arg.hold_id)
redis.call('HSET', key.hold, 'epoch', epoch, 'uses', arg.uses, 'amount', arg.fixed == '' and '' or amount,
  'tokens', whole(tokens), 'grant', arg.grant_id, 'budgets', arg.budget_ids, 'record', arg.record)
if needed_tokens > 0 and has_window then redis.call('HSET', key.hold, 'token_hold', whole(needed_tokens)) end
return answer
