CREATE TABLE "audit" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"account_id" uuid NOT NULL,
	"at" timestamp with time zone DEFAULT now() NOT NULL,
	"actor" text NOT NULL,
	"action" text NOT NULL,
	"target_kind" text NOT NULL,
	"target_id" text NOT NULL,
	"request_id" uuid,
	"remote_address" text,
	"before" text,
	"after" text
);
--> statement-breakpoint
CREATE INDEX "audit_account_id_at_index" ON "audit" USING btree ("account_id","at");--> statement-breakpoint
CREATE INDEX "audit_account_id_target_id_at_index" ON "audit" USING btree ("account_id","target_id","at");--> statement-breakpoint
CREATE INDEX "audit_at_index" ON "audit" USING btree ("at");