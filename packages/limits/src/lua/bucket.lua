-- bucket: before scripts that count calls by the minute. It holds a minute's calls and fills evenly; what is not
-- known yet is full. A clock that went back (another server's, after a failover) refills nothing.
local function bucket(perMinute, level, at, now)
  if not level then return perMinute end
  return math.min(perMinute, level + math.max(now - at, 0) * perMinute / 60000)
end
-- Milliseconds until so many may pass. More than it can hold wait for a full one, and leave it in debt.
local function untilHas(perMinute, level, calls)
  return math.ceil((math.min(calls, perMinute) - level) * 60000 / perMinute)
end
