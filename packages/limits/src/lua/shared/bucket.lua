-- A rate limit is a bucket: it holds the calls of a window, such as a minute, and fills evenly. One that is not known yet is full.
-- A clock that went back (another server's, after a failover) refills nothing.
local function level_now(limit, window_ms, level, at, now)
  if not level then return limit end
  level = math.min(limit, level + math.max(now - at, 0) * limit / window_ms)
  -- Floating-point sums can be slightly low: without rounding, a call that waited for its full `Retry-After` could find 0.9999999999999999.
  local nearest = math.floor(level + 0.5)
  return math.abs(level - nearest) < 1e-9 and nearest or level
end
-- Milliseconds until so many calls may pass, which are no more than the limit.
local function ms_until(limit, window_ms, level, calls)
  return math.ceil((calls - level) * window_ms / limit)
end
