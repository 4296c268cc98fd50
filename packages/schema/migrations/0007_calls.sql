ALTER TABLE "ledger" ADD COLUMN "held_microusd" bigint;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "price_list" text;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "failure" text;--> statement-breakpoint
CREATE INDEX "ledger_request_id_index" ON "ledger" USING btree ("request_id") WHERE "ledger"."request_id" is not null;--> statement-breakpoint
CREATE INDEX "ledger_account_id_external_user_settled_at_index" ON "ledger" USING btree ("account_id","external_user","settled_at") WHERE "ledger"."external_user" is not null;