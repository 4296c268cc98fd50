-- A rate limit is a bucket: it holds a minute's calls and fills evenly. One that is not known yet is full.
-- A clock that went back (another server's, after a failover) refills nothing.
local function level_now(per_minute, level, at, now)
  if not level then return per_minute end
  return math.min(per_minute, level + math.max(now - at, 0) * per_minute / 60000)
end
-- Milliseconds until so many calls may pass. More calls than a minute's wait for a full bucket and leave it in debt.
local function ms_until(per_minute, level, calls)
  return math.ceil((math.min(calls, per_minute) - level) * 60000 / per_minute)
end
