#!lua flags=no-writes
-- due: the holds whose lease has run out by Redis' own clock.
-- KEYS     leases
-- ARGV     most: ids to return
-- Returns  due: now_ms, hold_ids
-- include: clock, whole
local now = now_ms()
local due = redis.call('ZRANGE', key.leases, '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, arg.most)
return reply.due{now_ms = now, hold_ids = due}
