#!lua flags=no-writes
-- find-ends: finds the grants that are revoked, whose credential is, or whose account is suspended, and those whose end was moved.
-- KEYS     each: grant, credential, account
-- Returns  found: the positions in the list, from 1, of those that are revoked, of those whose account alone is suspended, and of
--            those whose end alone was moved; ends_ms: these ends, Unix
local revoked, suspended, moved, ends_ms = {}, {}, {}, {}
for i = 1, #each do
  local is_revoked, ends = unpack(redis.call('HMGET', each.grant[i], 'revoked', 'ends'))
  if is_revoked or redis.call('HEXISTS', each.credential[i], 'revoked') == 1 then
    revoked[#revoked + 1] = i
  elseif redis.call('HGET', each.account[i], 'suspended') == '1' then
    suspended[#suspended + 1] = i
  elseif ends then
    moved[#moved + 1], ends_ms[#ends_ms + 1] = i, tonumber(ends)
  end
end
return reply.found{revoked = revoked, suspended = suspended, moved = moved, ends_ms = ends_ms}
