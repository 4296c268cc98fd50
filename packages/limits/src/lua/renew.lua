#!lua flags=allow-oom
-- renew: extends the leases that are still held.
-- KEYS     leases
-- ARGV     lease_ms; each: hold_id
-- Returns  how many it extended
-- include: clock, whole
local ends = whole(now_ms() + tonumber(arg.lease_ms))
local renewed = 0
for i = 1, #each do
  if redis.call('ZSCORE', key.leases, each.hold_id[i]) then
    redis.call('ZADD', key.leases, ends, each.hold_id[i])
    renewed = renewed + 1
  end
end
return renewed
