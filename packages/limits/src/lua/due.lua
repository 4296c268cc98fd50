#!lua flags=no-writes
-- due: the holds whose lease has run out by Redis' own clock.
-- KEYS     each: leases
-- ARGV     most: ids to return of each
-- Returns  due: now_ms; at: for each id, the position of its partition in the list; hold_ids
-- include: clock, whole
local now = now_ms()
local at, hold_ids = {}, {}
for i = 1, #each do
  for _, id in ipairs(redis.call('ZRANGE', each.leases[i], '-inf', whole(now), 'BYSCORE', 'LIMIT', 0, arg.most)) do
    at[#at + 1] = i
    hold_ids[#hold_ids + 1] = id
  end
end
return reply.due{now_ms = now, at = at, hold_ids = hold_ids}
