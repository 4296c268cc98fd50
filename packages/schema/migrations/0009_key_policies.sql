ALTER TABLE "api_keys" ADD COLUMN "policy" text;--> statement-breakpoint
ALTER TABLE "grants" ADD COLUMN "models" text;