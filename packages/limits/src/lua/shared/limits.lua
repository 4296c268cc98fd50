-- The limits of a budget, in one text: the field of each and its value in turn. '-': there is no limit, and no field.
local function put_limits(budget, limits)
  local set, unset = {}, {}
  for field, value in string.gmatch(limits, '(%S+) (%S+)') do
    if value == '-' then
      unset[#unset + 1] = field
    else
      set[#set + 1] = field
      set[#set + 1] = value
    end
  end
  redis.call('HSET', budget, unpack(set))
  if #unset > 0 then redis.call('HDEL', budget, unpack(unset)) end
end
