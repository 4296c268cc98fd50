#!lua flags=allow-oom
-- replace: puts another version of a credential, or another seal of the same version, in its place. It never goes back
-- to an earlier version, nor revives a revoked one. With a lifetime it stays even where no grant has loaded it, because a
-- `load` with the earlier version may be on its way.
-- KEYS     partition, credential
-- ARGV     version; sealed; least_ms: the least lifetime, '' to replace only a copy that is there
-- Returns  1, or 0 when nothing was changed
local known_version, revoked = unpack(redis.call('HMGET', key.credential, 'version', 'revoked'))
known_version = tonumber(known_version or '')
if revoked or (known_version or 0) > tonumber(arg.version) then return 0 end
if not known_version and arg.least_ms == '' then return 0 end

local ends = redis.call('PTTL', key.credential)
redis.call('HSET', key.credential, 'version', arg.version, 'sealed', arg.sealed)
local epoch = redis.call('HGET', key.partition, 'epoch')
if epoch then redis.call('HSET', key.credential, 'epoch', epoch) end
if arg.least_ms ~= '' and ends ~= -1 and ends < tonumber(arg.least_ms) then
  redis.call('PEXPIRE', key.credential, arg.least_ms)
end
return 1
