-- A refused call may cost the provider work, so a loop of refused calls must not be free. `returned`, in the grant's own budget (the
-- first), counts the give-backs and stays below `max_uses` + 20, or without `max_uses` below the charged calls + 20. A call that gets
-- only its money back counts twice, because it also raises `used`, and with it the bound.
local function bound_of(own, uses) return (own.max_uses >= 0 and own.max_uses or own.used - uses) + 20 end
-- Returns how much this give-back adds to `returned`: 0 if it frees no limit, nil if the bound is reached.
local function weigh_give_back(budgets, uses, microusd, tokens)
  local own, frees_uses, frees_money = budgets[1], false, false
  for _, budget in ipairs(budgets) do
    if budget and uses > 0 and budget.max_uses >= 0 then frees_uses = true end
    if budget and microusd > 0 and budget.cost_limit >= 0 then frees_money = true end
    if budget and (tokens or 0) > 0 and budget.token_limit >= 0 then frees_money = true end
  end
  -- Where a call keeps its use, `max_uses` bounds it already.
  if not own or not (frees_uses or (frees_money and (uses > 0 or own.max_uses < 0))) then return 0 end
  local weight = uses > 0 and uses or 2
  if own.returned + weight >= bound_of(own, uses) then return nil end
  return weight
end
