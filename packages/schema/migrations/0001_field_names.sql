ALTER TABLE "pots" RENAME TO "budgets";--> statement-breakpoint
ALTER TABLE "budgets" RENAME COLUMN "told_uses_percent" TO "announced_uses_percent";--> statement-breakpoint
ALTER TABLE "budgets" RENAME COLUMN "told_cost_percent" TO "announced_cost_percent";--> statement-breakpoint
ALTER TABLE "grants" RENAME COLUMN "pot_id" TO "budget_id";--> statement-breakpoint
ALTER TABLE "grants" RENAME COLUMN "expiry_told" TO "expiry_announced";--> statement-breakpoint
ALTER TABLE "grants" RENAME CONSTRAINT "grants_pot_id_pots_id_fk" TO "grants_budget_id_budgets_id_fk";--> statement-breakpoint
ALTER TABLE "virtual_keys" RENAME COLUMN "pot_id" TO "budget_id";--> statement-breakpoint
ALTER TABLE "virtual_keys" RENAME CONSTRAINT "virtual_keys_pot_id_pots_id_fk" TO "virtual_keys_budget_id_budgets_id_fk";--> statement-breakpoint
ALTER TABLE "untold_usage" RENAME TO "pending_usage";--> statement-breakpoint
ALTER TABLE "pending_usage" RENAME CONSTRAINT "untold_usage_hold_id_ledger_hold_id_fk" TO "pending_usage_hold_id_ledger_hold_id_fk";
