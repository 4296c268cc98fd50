#!lua flags=allow-oom
-- drain: returns the next entries for the ledger, and says whether Redis still holds what the ledger has seen.
-- Opens a closed partition when nothing is left to drain and every hold in it is noted (see `carry`).
-- KEYS     partition, usage: the stream, leases, survivors
-- ARGV     epoch and last_id: what Postgres knows; most: entries to return
-- Returns  ok: entries
--          carry: hold_ids: to note
--          lost: Redis is empty, behind the ledger, or another process
--          epoch: epoch: in Redis
local epoch, state, drained, run_id = unpack(redis.call('HMGET', key.partition, 'epoch', 'state', 'drained', 'run'))
if not epoch then return reply.lost end
if epoch ~= arg.epoch then return reply.epoch{epoch = tonumber(epoch)} end
-- A restart or failover may have lost writes that the ledger does not have yet, or never has, such as a revocation.
local info = redis.pcall('INFO', 'server')
if run_id ~= (type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '') then return reply.lost end
-- The last drained entry was either trimmed by `trim`, which notes it, or it still stands in the stream.
if drained ~= arg.last_id and #redis.call('XRANGE', key.usage, arg.last_id, arg.last_id) == 0 then
  return reply.lost
end

local entries = redis.call('XRANGE', key.usage, '(' .. arg.last_id, '+', 'COUNT', arg.most)
if #entries == 0 and state == 'closed' then
  local missing = {}
  for _, id in ipairs(redis.call('ZRANGE', key.leases, 0, -1)) do
    if redis.call('HEXISTS', key.survivors, id) == 0 then missing[#missing + 1] = id end
  end
  if #missing > 0 then return reply.carry{hold_ids = missing} end
  redis.call('HSET', key.partition, 'state', 'open')
end
return reply.ok{entries = entries}
