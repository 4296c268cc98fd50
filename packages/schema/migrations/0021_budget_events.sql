DROP INDEX "shared_budgets_scope_index";--> statement-breakpoint
ALTER TABLE "budgets" ADD COLUMN "reset_announced" boolean DEFAULT true NOT NULL;--> statement-breakpoint
ALTER TABLE "budgets" ALTER COLUMN "reset_announced" SET DEFAULT false;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD COLUMN "scope_key" text DEFAULT '' NOT NULL;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD COLUMN "thresholds" smallint[] DEFAULT '{50,80,100}' NOT NULL;--> statement-breakpoint
CREATE INDEX "budgets_reset_index" ON "budgets" USING btree ("ends_at") WHERE "budgets"."ends_at" is not null and not "budgets"."reset_announced";--> statement-breakpoint
CREATE UNIQUE INDEX "shared_budgets_scope_index" ON "shared_budgets" USING btree ("account_id","scope","scope_key","scope_value","window","is_template") WHERE "shared_budgets"."deleted_at" is null;