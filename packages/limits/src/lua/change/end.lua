#!lua flags=allow-oom
-- end: puts the end of a grant's revision in the place of an earlier one, also where the grant is not loaded. Running it
-- again changes nothing.
-- KEYS     grant, credential
-- ARGV     revision: of the grant's own budget; ends_ms: of the grant, and end_ms: of its keys, both Unix
-- Returns  1, or 0 when Redis has a later revision
-- include: whole
local known = redis.call('HGET', key.grant, 'revision')
if (tonumber(known or '') or 0) > tonumber(arg.revision) then return 0 end
local keys_end = math.max(tonumber(arg.end_ms), redis.call('PEXPIRETIME', key.grant))
redis.call('HSET', key.grant, 'revision', arg.revision, 'ends', arg.ends_ms)
redis.call('PEXPIREAT', key.grant, whole(keys_end))
local ends = redis.call('PEXPIRETIME', key.credential)
if ends >= 0 and ends < keys_end then redis.call('PEXPIREAT', key.credential, whole(keys_end)) end
return 1
