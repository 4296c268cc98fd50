ALTER TABLE "budgets" ADD COLUMN "token_limit" bigint;--> statement-breakpoint
ALTER TABLE "budgets" ADD COLUMN "used_tokens" bigint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "budgets" ADD COLUMN "announced_tokens_percent" smallint DEFAULT 0 NOT NULL;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD COLUMN "token_limit" bigint;