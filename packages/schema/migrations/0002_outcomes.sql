CREATE TABLE "call_hours" (
	"account_id" uuid NOT NULL,
	"hour" timestamp with time zone NOT NULL,
	"provider" text NOT NULL,
	"model" text,
	"server" text,
	"outcome" text NOT NULL,
	"first_byte" smallint,
	"total" smallint,
	"calls" bigint NOT NULL,
	"is_merged" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "first_byte_ms" integer;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "total_ms" integer;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "own_us" integer;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "retry_count" smallint;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "user_agent" text;--> statement-breakpoint
ALTER TABLE "usage_days" ADD COLUMN "outcome" text;--> statement-breakpoint
CREATE INDEX "call_hours_account_id_hour_index" ON "call_hours" USING btree ("account_id","hour");--> statement-breakpoint
CREATE INDEX "call_hours_hour_index" ON "call_hours" USING btree ("hour") WHERE not "call_hours"."is_merged";