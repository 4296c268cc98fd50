-- reopen: begin a new epoch, closed: what Redis holds of older ones is no longer believed, and the stream
-- is drained from its start (the ledger knows what it has) before `drain` opens the partition.
-- KEYS  1 partition, 2 survivors    ARGV  1 the new epoch
-- Returns 1, or 0 when the partition is at that epoch or a later one
local epoch = redis.call('HGET', KEYS[1], 'epoch')
if epoch and tonumber(epoch) >= tonumber(ARGV[1]) then return 0 end
local info = redis.pcall('INFO', 'server')
local run = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'state', 'closed', 'drained', '0-0', 'run', run)
redis.call('DEL', KEYS[2])
return 1
