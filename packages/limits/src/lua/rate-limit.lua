-- rate-limit: count a request by the minute, or say how long it must wait. (bucket.lua goes before.)
-- KEYS  1 rate limit    ARGV  1 requests a minute
-- Returns {'ok' | 'wait', requests left, ms until it is full, ms until this request may pass}
local time = redis.call('TIME')
local now, perMinute = time[1] * 1000 + math.floor(time[2] / 1000), tonumber(ARGV[1])
local known = redis.call('HMGET', KEYS[1], 'level', 'at')
local level = bucket(perMinute, tonumber(known[1] or ''), tonumber(known[2] or ''), now)
if level < 1 then
  -- Else all would wait until a clock that went back is where it was.
  if tonumber(known[2] or '') > now then redis.call('HSET', KEYS[1], 'at', string.format('%.0f', now)) end
  return {'wait', 0, untilHas(perMinute, level, perMinute), untilHas(perMinute, level, 1)}
end
redis.call('HSET', KEYS[1], 'level', string.format('%.17g', level - 1), 'at', string.format('%.0f', now))
-- By then it is full again.
redis.call('PEXPIRE', KEYS[1], 60000)
return {'ok', math.floor(level - 1), untilHas(perMinute, level - 1, perMinute), 0}
