-- revoke: leaves a tombstone, which stands even for a grant that Redis does not know, and which `open` obeys.
-- KEYS     grant
-- ARGV     end_ms: of the grant's keys, Unix
-- Returns  1
redis.call('HSET', key.grant, 'revoked', '1')
redis.call('PEXPIREAT', key.grant, arg.end_ms)
return 1
