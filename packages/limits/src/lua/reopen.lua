#!lua flags=allow-oom
-- reopen: begins a new epoch, closed. Scripts ignore the data of older epochs. The stream is drained from its start (the
-- ledger passes over calls that it has) before `drain` opens the partition.
-- KEYS     partition, survivors
-- ARGV     epoch: the new one
-- Returns  1, or 0 when the partition is at that epoch or a later one
local epoch = redis.call('HGET', key.partition, 'epoch')
if epoch and tonumber(epoch) >= tonumber(arg.epoch) then return 0 end
local info = redis.pcall('INFO', 'server')
local run_id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
redis.call('DEL', key.survivors)
redis.call('HSET', key.partition, 'epoch', arg.epoch, 'state', 'closed', 'drained', '0-0', 'run', run_id)
return 1
