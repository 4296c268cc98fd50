ALTER TABLE "api_keys" ADD COLUMN "revoking_after" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "grants" ADD COLUMN "api_key_id" uuid;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "api_key_id" uuid;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "request_id" uuid;--> statement-breakpoint
CREATE INDEX "grants_api_key_id_issued_at_index" ON "grants" USING btree ("api_key_id","issued_at") WHERE "grants"."api_key_id" is not null;