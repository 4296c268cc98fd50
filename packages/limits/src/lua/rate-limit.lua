#!lua flags=allow-oom
-- rate-limit: counts a request by the minute, unless it must wait.
-- KEYS     rate
-- ARGV     per_minute
-- Returns  counted: left; reset_ms: until a minute's requests are left; wait_ms: until this request may pass
-- include: clock, whole, bucket
local now, per_minute = now_ms(), tonumber(arg.per_minute)
local level, at = unpack(redis.call('HMGET', key.rate, 'level', 'at'))
at = tonumber(at or '')
level = level_now(per_minute, 60000, tonumber(level or ''), at, now)
local waits = level < 1
local wait_ms = waits and ms_until(per_minute, 60000, level, 1) or 0
if not waits then level = level - 1 end
local reset_ms = ms_until(per_minute, 60000, level, per_minute)
if waits then
  -- Otherwise all requests would wait until a clock that went back has caught up.
  if at > now then redis.call('HSET', key.rate, 'at', whole(now)) end
else
  redis.call('HSET', key.rate, 'level', string.format('%.17g', level), 'at', whole(now))
  -- By then it is full again.
  redis.call('PEXPIRE', key.rate, 60000)
end
return reply.counted{left = math.floor(level), reset_ms = reset_ms, wait_ms = wait_ms}
