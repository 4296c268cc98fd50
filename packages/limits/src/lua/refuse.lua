#!lua
-- refuse: adds refused calls to the stream that issuers read, all or, while that is full, none.
-- KEYS     refused: the stream
-- ARGV     most: entries of a full stream; each: entry
-- Returns  1, or 0 when it is full
if redis.call('XLEN', key.refused) >= tonumber(arg.most) then return 0 end
for i = 1, #each do
  redis.call('XADD', key.refused, '*', 'entry', each.entry[i])
end
return 1
