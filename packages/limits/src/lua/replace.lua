-- replace: another version of a credential, or the same one sealed anew; never goes back to an earlier one, nor
-- revives a revoked one. With a lifetime it stands even where no grant has opened it, for `open` may be on its
-- way with what Postgres said before.
-- KEYS  1 partition, 2 credential
-- ARGV  1 version, 2 sealed credential, 3 least lifetime in ms ('' to replace only a copy that is there)
-- Returns 1, or 0 when nothing was changed
local known = redis.call('HMGET', KEYS[2], 'version', 'revoked')
local version = tonumber(known[1] or '')
if known[2] or (version or 0) > tonumber(ARGV[1]) or (not version and ARGV[3] == '') then return 0 end

local ends = redis.call('PTTL', KEYS[2])
redis.call('HSET', KEYS[2], 'version', ARGV[1], 'sealed', ARGV[2])
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch then redis.call('HSET', KEYS[2], 'epoch', epoch) end
if ARGV[3] ~= '' and ends ~= -1 and ends < tonumber(ARGV[3]) then redis.call('PEXPIRE', KEYS[2], ARGV[3]) end
return 1
