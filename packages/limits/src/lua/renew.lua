-- renew: put off the end of leases that are still held.
-- KEYS  1 leases    ARGV  1 lease in ms, 2… hold ids
-- Returns how many were renewed
local time = redis.call('TIME')
local ends = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000) + tonumber(ARGV[1]))
local renewed = 0
for i = 2, #ARGV do
  if redis.call('ZSCORE', KEYS[1], ARGV[i]) then
    redis.call('ZADD', KEYS[1], ends, ARGV[i])
    renewed = renewed + 1
  end
end
return renewed
