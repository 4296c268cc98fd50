#!lua flags=allow-oom
-- revoke: leaves a tombstone, which stands even for a grant that Redis does not know, and which `load` obeys.
-- KEYS     grant
-- ARGV     end_ms: of the grant's keys, Unix; least_ms: the least lifetime
-- Returns  1
-- include: clock, whole
-- PEXPIREAT deletes a key whose end has passed. Calls admitted before that may still run, and must find the tombstone.
local ends = math.max(tonumber(arg.end_ms), now_ms() + tonumber(arg.least_ms), redis.call('PEXPIRETIME', key.grant))
redis.call('HSET', key.grant, 'revoked', '1')
redis.call('PEXPIREAT', key.grant, whole(ends))
return 1
