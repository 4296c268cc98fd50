#!lua flags=allow-oom
-- withdraw: leaves a credential's tombstone, which stands even where no grant has loaded it, and which `admit` and
-- `load` obey. Erases what was sealed.
-- KEYS     credential
-- ARGV     least_ms: the least lifetime
-- Returns  1
local ends = redis.call('PTTL', key.credential)
redis.call('HDEL', key.credential, 'sealed')
redis.call('HSET', key.credential, 'revoked', '1')
if ends ~= -1 and ends < tonumber(arg.least_ms) then redis.call('PEXPIRE', key.credential, arg.least_ms) end
return 1
