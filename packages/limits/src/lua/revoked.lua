-- revoked: which of these grants have been revoked.
-- KEYS  1… grants    ARGV  none
-- Returns the positions of the revoked ones, from 1
local found = {}
for i = 1, #KEYS do
  if redis.call('HEXISTS', KEYS[i], 'revoked') == 1 then found[#found + 1] = i end
end
return found
