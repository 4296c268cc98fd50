#!lua flags=allow-oom
-- account: suspends an account, or ends its suspension. A state never replaces that of a later version.
-- KEYS     account
-- ARGV     version; suspended: 1 or 0; least_ms: the lifetime of a state that suspends nothing
-- Returns  1, or 0 when nothing was changed
local known = tonumber(redis.call('HGET', key.account, 'version') or '0')
if known > tonumber(arg.version) then return 0 end
redis.call('HSET', key.account, 'version', arg.version, 'suspended', arg.suspended)
if arg.suspended == '1' then
  redis.call('PERSIST', key.account)
else
  -- As long as the write of an earlier version may be on its way.
  redis.call('PEXPIRE', key.account, arg.least_ms)
end
return 1
