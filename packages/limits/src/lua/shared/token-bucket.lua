-- Tokens by the minute: a bucket like that of `bucket`, in parts of which 60,000 are a token. Each millisecond it gains as
-- many parts as there are tokens a minute, so every level is a whole number.
local PARTS = 60000
local function parts_now(per_minute, level, at, now)
  if not level then return per_minute * PARTS end
  -- A debt is one minute's tokens at most, also after the limit was lowered.
  level = math.max(level, 0 - per_minute * PARTS)
  return math.min(per_minute * PARTS, level + math.max(now - at, 0) * per_minute)
end
-- The parts that a call gives back that took `taken` tokens at `since` and used `used`. The bucket must not hold more than
-- if the call had taken only what it used. It might then have been full ever since, so all that it gained counts as lost.
local function parts_back(per_minute, taken, used, since, at, now)
  local back = (taken - used) * PARTS
  if back <= 0 then return back end
  -- After a clock went back, its gain is not known.
  if now < since then return 0 end
  return math.max(back - (math.max(now, at) - since) * per_minute, 0)
end
