ALTER TABLE "ledger" ADD COLUMN "tags" text;--> statement-breakpoint
ALTER TABLE "refused_calls" ADD COLUMN "tags" text;--> statement-breakpoint
ALTER TABLE "usage_days" ADD COLUMN "tags" text;