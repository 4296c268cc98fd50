-- revoked: which of these grants have been revoked, themselves or by their credential.
-- KEYS  1… a grant, its credential, and so on    ARGV  none
-- Returns the positions of the revoked grants among the grants, from 1
local found = {}
for i = 1, #KEYS, 2 do
  local revoked = redis.call('HEXISTS', KEYS[i], 'revoked') + redis.call('HEXISTS', KEYS[i + 1], 'revoked')
  if revoked > 0 then found[#found + 1] = (i + 1) / 2 end
end
return found
