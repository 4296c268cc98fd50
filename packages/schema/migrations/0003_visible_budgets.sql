ALTER TABLE "budgets" ADD COLUMN "visible" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD COLUMN "visible" boolean DEFAULT false NOT NULL;