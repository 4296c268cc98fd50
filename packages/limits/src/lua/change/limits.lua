#!lua flags=allow-oom
-- limits: puts the limits of a budget's revision in the place of earlier ones. Where the budget is not loaded it leaves the
-- revision alone, so that a `load` with earlier limits that is on its way is stale. Running it again changes nothing.
-- KEYS     budget
-- ARGV     revision; limits: see shared/limits.lua; end_ms: of the budget's key, Unix, or '' if it has no end
-- Returns  1, or 0 when Redis has a later revision
-- include: limits
local epoch, known = unpack(redis.call('HMGET', key.budget, 'epoch', 'revision'))
if (tonumber(known or '') or 0) > tonumber(arg.revision) then return 0 end
local ends = redis.call('PEXPIRETIME', key.budget)
redis.call('HSET', key.budget, 'revision', arg.revision)
if epoch then put_limits(key.budget, arg.limits) end
-- A key never ends earlier than it would have: it outlives every hold on it, and every `load` with an earlier revision.
if arg.end_ms ~= '' and ends ~= -1 and ends < tonumber(arg.end_ms) then
  redis.call('PEXPIREAT', key.budget, arg.end_ms)
end
return 1
