ALTER TABLE "budgets" ADD COLUMN "revision" integer DEFAULT 1 NOT NULL;--> statement-breakpoint
ALTER TABLE "grants" ADD COLUMN "signed_until" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD COLUMN "budget_id" uuid;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_budget_id_budgets_id_fk" FOREIGN KEY ("budget_id") REFERENCES "public"."budgets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "pending_changes_budget_id_index" ON "pending_changes" USING btree ("budget_id") WHERE "pending_changes"."budget_id" is not null;