-- The stream may grow beyond the bound of its partition while its Redis uses less than three quarters of `maxmemory`. The last
-- quarter is for the partitions below the bound, and for URLs. A Redis that states no `maxmemory` has no such room.
local ROOM = 0.75
local function has_room()
  local info = redis.pcall('INFO', 'memory')
  if type(info) ~= 'string' then return false end
  local used, most = string.match(info, 'used_memory:(%d+)'), string.match(info, 'maxmemory:(%d+)')
  return used and most and tonumber(used) < ROOM * tonumber(most)
end
