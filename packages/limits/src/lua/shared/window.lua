-- A window, as a budget has it: when it began and when it ends, in Unix milliseconds. One without an end lasts for good.
local function is_within(window, now)
  local starts, ends = string.match(window, '^(%d+) (%d*)$')
  return now >= tonumber(starts) and (ends == '' or now < tonumber(ends))
end
