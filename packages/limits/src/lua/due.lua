-- due: the holds whose lease has run out by Redis' own clock.
-- KEYS  1 leases    ARGV  1 most ids
-- Returns hold ids
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
return redis.call('ZRANGE', KEYS[1], '-inf', now, 'BYSCORE', 'LIMIT', 0, ARGV[1])
