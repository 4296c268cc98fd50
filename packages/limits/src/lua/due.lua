#!lua flags=no-writes
-- due: the holds whose lease has run out by Redis' own clock.
-- KEYS     leases
-- ARGV     most: ids to return
-- Returns  hold ids
-- include: clock, whole
return redis.call('ZRANGE', key.leases, '-inf', whole(now_ms()), 'BYSCORE', 'LIMIT', 0, arg.most)
