-- Entries of a budget that is not loaded in this epoch. When it is loaded, it counts those that the ledger has not reached. A
-- budget that is loaded counts its entries itself, and a partition opens only once the ledger has the entries of older epochs:
-- so `load` need not read the stream.
local function late_prefix(epoch) return 'late:' .. epoch .. ':' end
-- Only a loss of data leaves such a budget. Its key may be gone, too, and then nothing else would end it.
local LATE_SECONDS = 30 * 86400
local function note_late(budget, epoch, entry_id, uses, cost, tokens)
  redis.call('HSET', budget, late_prefix(epoch) .. entry_id, uses .. ' ' .. (tonumber(cost) and cost or '0') .. ' ' .. (tokens or '0'))
  -- A revision that stands alone ends by itself.
  local is_known = redis.call('HEXISTS', budget, 'epoch') + redis.call('HEXISTS', budget, 'revision') > 0
  if not is_known then redis.call('EXPIRE', budget, LATE_SECONDS) end
end
-- Calls `add` with uses, cost and tokens of each late entry after this id.
local function each_late(budget, epoch, last_id, add)
  local prefix, fields = late_prefix(epoch), redis.call('HGETALL', budget)
  for i = 1, #fields, 2 do
    if string.sub(fields[i], 1, #prefix) == prefix and is_before(last_id, string.sub(fields[i], #prefix + 1)) then
      add(string.match(fields[i + 1], '^(%S+) (%S+) ?(%S*)$'))
    end
  end
end
