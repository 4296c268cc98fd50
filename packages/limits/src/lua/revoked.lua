#!lua flags=no-writes
-- revoked: finds the grants that are revoked, whose credential is, or whose account is suspended.
-- KEYS     each: grant, credential, account
-- Returns  the positions of these grants in the list, from 1; negative where only the account is suspended
local found = {}
for i = 1, #each do
  local is_revoked = redis.call('HEXISTS', each.grant[i], 'revoked') == 1
  if is_revoked or redis.call('HEXISTS', each.credential[i], 'revoked') == 1 then
    found[#found + 1] = i
  elseif redis.call('HGET', each.account[i], 'suspended') == '1' then
    found[#found + 1] = -i
  end
end
return found
