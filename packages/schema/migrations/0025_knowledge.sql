CREATE TABLE "knowledge_files" (
	"source" text PRIMARY KEY NOT NULL,
	"id" text NOT NULL,
	"list" text NOT NULL,
	"dated_at" timestamp with time zone NOT NULL,
	"offered_id" text,
	"offered" text,
	"offered_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "knowledge" text;