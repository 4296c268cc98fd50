-- A whole number as the argument of a command: Lua's own text of a large one is not exact.
local function whole(figure) return string.format('%.0f', figure) end
