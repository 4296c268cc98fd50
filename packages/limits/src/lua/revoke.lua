-- revoke: a tombstone that stands even for a grant Redis does not know, and that `open` obeys.
-- KEYS  1 grant    ARGV  1 end of the grant's keys (Unix ms)
-- Returns 1
redis.call('HSET', KEYS[1], 'revoked', '1')
redis.call('PEXPIREAT', KEYS[1], ARGV[1])
return 1
