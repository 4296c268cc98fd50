-- Rate limits that were counted are one text: the name of each, its limit, how much is left now, and ms until all of it is.
local function rate_text(name, limit, left, reset_ms)
  return string.format('%s %.0f %.0f %.0f ', name, limit, math.max(math.floor(left), 0), reset_ms)
end
-- Takes calls out of the bucket of a window. Returns its level, its text for the headers, and the wait in ms if the calls must wait. More
-- calls than a window holds never pass: a debt would let far more pass in a day than the limit.
local NEVER = -1
local function take_from_bucket(name, window_ms, limit, level, at, calls, now)
  level = level_now(limit, window_ms, level, at, now)
  local lacks = calls > 0 and level < calls
  if not lacks then level = level - calls end
  local text = rate_text(name, limit, level, ms_until(limit, window_ms, level, limit))
  if lacks then return level, text, calls > limit and NEVER or ms_until(limit, window_ms, level, calls) end
  return level, text
end
