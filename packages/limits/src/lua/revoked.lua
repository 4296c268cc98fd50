#!lua flags=no-writes
-- revoked: finds the grants that are revoked, or whose credential is.
-- KEYS     each: grant, credential
-- Returns  the positions of the revoked grants in the list, from 1
local found = {}
for i = 1, #each do
  local is_revoked = redis.call('HEXISTS', each.grant[i], 'revoked') == 1
  if is_revoked or redis.call('HEXISTS', each.credential[i], 'revoked') == 1 then found[#found + 1] = i end
end
return found
