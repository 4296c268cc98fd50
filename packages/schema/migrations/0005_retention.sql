CREATE TABLE "usage_days" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"day" date NOT NULL,
	"provider" text NOT NULL,
	"model" text,
	"server" text,
	"tool" text,
	"external_user" text,
	"api_key_id" uuid,
	"virtual_key_id" text,
	"calls" numeric NOT NULL,
	"uses" numeric NOT NULL,
	"cost_microusd" numeric NOT NULL,
	"calls_of_unknown_cost" numeric NOT NULL,
	"input_tokens" numeric NOT NULL,
	"output_tokens" numeric NOT NULL
);
--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "virtual_key_id" text;--> statement-breakpoint
CREATE INDEX "usage_days_account_id_day_index" ON "usage_days" USING btree ("account_id","day");--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "grants_budget_id_index" ON "grants" USING btree ("budget_id");--> statement-breakpoint
CREATE INDEX IF NOT EXISTS "grants_expires_at_index" ON "grants" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "pending_changes_grant_id_index" ON "pending_changes" USING btree ("grant_id") WHERE "pending_changes"."grant_id" is not null;--> statement-breakpoint
CREATE INDEX "pending_changes_credential_id_index" ON "pending_changes" USING btree ("credential_id") WHERE "pending_changes"."credential_id" is not null;--> statement-breakpoint
CREATE INDEX "virtual_keys_budget_id_index" ON "virtual_keys" USING btree ("budget_id");