-- withdraw: a credential's tombstone, which stands even where no grant has opened it, and which `admit` and
-- `open` obey. What was sealed is gone.
-- KEYS  1 credential    ARGV  1 least lifetime in ms
-- Returns 1
local ends = redis.call('PTTL', KEYS[1])
redis.call('HSET', KEYS[1], 'revoked', '1')
redis.call('HDEL', KEYS[1], 'sealed')
if ends ~= -1 and ends < tonumber(ARGV[1]) then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return 1
