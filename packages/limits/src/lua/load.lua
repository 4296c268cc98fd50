#!lua
-- load: puts a grant, its credential and its budgets into Redis as Postgres has them, and changes nothing that Redis has
-- already, except earlier limits. A budget starts at the sums of the ledger, plus its late entries that the ledger has
-- not reached, plus the holds that outlived a loss of data.
-- KEYS     partition, grant, credential, usage: the stream, survivors, seed: of the grant; each: budget
-- ARGV     epoch; last_id: of the stream in the ledger, or '' to load from the seed; backlog_max: most entries that are read;
--          doc: of the grant; expires_ms: of the grant, and end_ms: of its keys, both Unix; is_bounded: 1 where the grant may
--          end before its token does; version and sealed: of the credential; each: id, revision, limits: see
--          shared/limits.lua, used, settled, used_tokens, key_ends_ms: of its key, Unix, or '' if it has no end; window: ''
--          or its beginning and its end, see shared/window.lua
-- Returns  ok, revoked, expired, closed, stale: read Postgres again
--          another_window: now_ms: a window has ended or not begun by this time: read Postgres again
-- A seed is used once, in the Redis process in which its epoch began, and only where neither grant nor budget stands: so no
-- call has drawn on the budget. Another process may have lost calls, and have a used seed again.
-- include: clock, whole, stream-id, late, window, limits
-- A function that may refuse returns the refusal, nil where there is none.
local epoch, state, drained, run_id = unpack(redis.call('HMGET', key.partition, 'epoch', 'state', 'drained', 'run'))
local is_seeded = arg.last_id == ''
local last_id = is_seeded and drained or arg.last_id
-- The levels of the rate limits. Postgres does not have them.
local LEVELS = {'level', 'at', 'per_day_level', 'per_day_at', 'token_level', 'token_at'}

-- Postgres was read before a change that Redis has already: what it said then must not come back.
local function why_stale()
  -- The ledger went on since Postgres was read: entries may be gone from the stream.
  if epoch ~= arg.epoch or is_before(last_id, drained) then return reply.stale end
  if redis.call('HEXISTS', key.grant, 'revoked') == 1 then return reply.revoked end
  if redis.call('HEXISTS', key.credential, 'revoked') == 1 then return reply.revoked end
  if tonumber(redis.call('HGET', key.grant, 'revision') or '0') > tonumber(each.revision[1]) then return reply.stale end
  for i = 1, #each do
    local known = redis.call('HGET', each.budget[i], 'revision')
    if tonumber(known or '0') > tonumber(each.revision[i]) then return reply.stale end
  end
end

-- A budget that is loaded again after its keys have ended would lack holds, and calls that the ledger has not reached.
local function why_over()
  local now = now_ms()
  if now >= tonumber(arg.expires_ms) then return reply.expired end
  for i = 1, #each do
    if each.window[i] ~= '' and not is_within(each.window[i], now) then return reply.another_window{now_ms = now} end
  end
end

local function is_seed_usable(is_planted)
  local info = redis.pcall('INFO', 'server')
  local is_same_run = run_id == (type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '')
  return is_planted and is_same_run and redis.call('EXISTS', key.grant, each.budget[1]) == 0
end

-- Redis has the budget, perhaps with earlier limits.
local function bring_up(i, revision)
  if tonumber(revision or '0') < tonumber(each.revision[i]) then
    redis.call('HSET', each.budget[i], 'revision', each.revision[i])
    put_limits(each.budget[i], each.limits[i])
  end
  local ends = redis.call('PEXPIRETIME', each.budget[i])
  if each.key_ends_ms[i] ~= '' and ends < tonumber(each.key_ends_ms[i]) then
    redis.call('PEXPIREAT', each.budget[i], each.key_ends_ms[i])
  end
end

local function add_call(budget, uses, cost, tokens)
  budget.used = budget.used + tonumber(uses)
  budget.settled = budget.settled + (tonumber(cost) or 0)
  budget.tokens = budget.tokens + (tonumber(tokens) or 0)
end

-- A budget as the ledger has it, with its late entries. Postgres does not have `returned` either, so that and the levels stay as an
-- older epoch left them.
local function fresh_budget(i, returned, known_doc)
  local budget = {item = i, used = tonumber(each.used[i]), settled = tonumber(each.settled[i]), held = 0,
    tokens = tonumber(each.used_tokens[i]), tokens_held = 0, active = 0, returned = returned or '0',
    levels = redis.call('HMGET', each.budget[i], unpack(LEVELS)), ends = redis.call('PEXPIRETIME', each.budget[i])}
  -- A window that the grant has not drawn on yet is new, although the grant was loaded.
  budget.was_loaded = known_doc and (each.window[i] == '' or string.find(known_doc, each.id[i], 1, true) ~= nil)
  if not budget.was_loaded then
    each_late(each.budget[i], epoch, last_id, function(uses, cost, tokens) add_call(budget, uses, cost, tokens) end)
  end
  return budget
end

local function add_stream(fresh)
  for _, entry in ipairs(redis.call('XRANGE', key.usage, '(' .. last_id, '+')) do
    local fields, field = entry[2], {}
    for at = 1, #fields, 2 do field[fields[at]] = fields[at + 1] end
    for id in string.gmatch(field.budgets, '[^,]+') do
      local budget = fresh[id]
      if budget and budget.was_loaded then add_call(budget, field.uses, field.cost, field.tokens) end
    end
  end
end

local function add_survivors(fresh)
  for _, survivor in ipairs(redis.call('HVALS', key.survivors)) do
    local uses, amount, budget_ids, places, tokens =
      string.match(survivor, '^(%d+) (%d+) (%S*) ?(%d*) ?(%d*)$')
    local own = fresh[string.match(budget_ids, '^[^,]*')]
    if own then own.active = own.active + (tonumber(places) or 0) end
    for id in string.gmatch(budget_ids, '[^,]+') do
      local budget = fresh[id]
      if budget then
        budget.used = budget.used + tonumber(uses)
        budget.held = budget.held + tonumber(amount)
        budget.tokens_held = budget.tokens_held + (tonumber(tokens) or 0)
      end
    end
  end
end

local function put_budget(budget)
  local i = budget.item
  redis.call('DEL', each.budget[i])
  redis.call('HSET', each.budget[i], 'epoch', epoch, 'from', last_id, 'revision', each.revision[i],
    'used', whole(budget.used), 'settled', whole(budget.settled), 'held', whole(budget.held), 'returned', budget.returned)
  put_limits(each.budget[i], each.limits[i])
  for at, field in ipairs(LEVELS) do
    if budget.levels[at] then redis.call('HSET', each.budget[i], field, budget.levels[at]) end
  end
  -- They free their places when they end, also where their number is not limited any more.
  if budget.active > 0 then redis.call('HSET', each.budget[i], 'active', whole(budget.active)) end
  if each.window[i] ~= '' then
    redis.call('HSET', each.budget[i], 'window', each.window[i], 'tokens', whole(budget.tokens),
      'tokens_held', whole(budget.tokens_held))
  end
  if each.key_ends_ms[i] ~= '' then
    redis.call('PEXPIREAT', each.budget[i], whole(math.max(tonumber(each.key_ends_ms[i]), budget.ends)))
  end
end

local function put_credential()
  local known_epoch, known_version = unpack(redis.call('HMGET', key.credential, 'epoch', 'version'))
  local version = tonumber(known_version or '') or 0
  -- A later version came from Postgres after this one was read there (see `replace`): it stays, in any epoch.
  if version < tonumber(arg.version) or (version == tonumber(arg.version) and known_epoch ~= epoch) then
    redis.call('HSET', key.credential, 'version', arg.version, 'sealed', arg.sealed)
  end
  redis.call('HSET', key.credential, 'epoch', epoch)
  local ends = redis.call('PEXPIRETIME', key.credential)
  if (ends ~= -1 and ends < tonumber(arg.end_ms)) or not known_epoch then
    redis.call('PEXPIREAT', key.credential, arg.end_ms)
  end
end

if not epoch or state ~= 'open' then return reply.closed end
local is_planted = is_seeded and redis.call('DEL', key.seed) == 1
local refused = why_stale() or why_over()
if refused then return refused end
if is_seeded and not is_seed_usable(is_planted) then return reply.stale end

local known_grant_epoch, known_doc = unpack(redis.call('HMGET', key.grant, 'epoch', 'doc'))
local fresh, reads_stream = {}, false
for i = 1, #each do
  local budget_epoch, returned, revision = unpack(redis.call('HMGET', each.budget[i], 'epoch', 'returned', 'revision'))
  if budget_epoch == epoch then
    bring_up(i, revision)
  else
    local budget = fresh_budget(i, returned, known_grant_epoch == epoch and known_doc)
    fresh[each.id[i]] = budget
    reads_stream = reads_stream or budget.was_loaded
  end
end
-- The grant drew on the budget in this epoch, so Redis has lost the budget's key alone. Only then is the whole stream read, and
-- only while it is short: Redis does nothing else meanwhile, 6 seconds for a million entries.
if reads_stream and redis.call('XLEN', key.usage) > tonumber(arg.backlog_max) then return reply.closed end
if reads_stream then add_stream(fresh) end
if next(fresh) then add_survivors(fresh) end
for _, budget in pairs(fresh) do put_budget(budget) end
put_credential()

local keys_end = math.max(tonumber(arg.end_ms), redis.call('PEXPIRETIME', key.grant))
redis.call('HSET', key.grant, 'epoch', epoch, 'doc', arg.doc, 'revision', each.revision[1])
if arg.is_bounded == '1' then redis.call('HSET', key.grant, 'ends', arg.expires_ms) end
redis.call('PEXPIREAT', key.grant, whole(keys_end))
return reply.ok
