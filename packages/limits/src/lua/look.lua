#!lua flags=no-writes
-- look: in which partitions the ledger may have work. `drain` decides what it is.
-- KEYS     each: partition, usage: the stream
-- ARGV     each: epoch and last_id: what Postgres knows
-- Returns  found: at: the positions of these partitions in the list
local info = redis.pcall('INFO', 'server')
local run_now = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
local found = {}
for i = 1, #each do
  local epoch, state, drained, run_id = unpack(redis.call('HMGET', each.partition[i], 'epoch', 'state', 'drained', 'run'))
  local is_open = epoch == each.epoch[i] and state == 'open' and run_id == run_now
  if not is_open or drained ~= each.last_id[i] or redis.call('XLEN', each.usage[i]) > 0 then
    found[#found + 1] = i
  end
end
return reply.found{at = found}
