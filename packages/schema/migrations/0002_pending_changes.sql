CREATE TABLE "pending_changes" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"change_id" uuid NOT NULL,
	"grant_id" uuid,
	"credential_id" uuid,
	"done" boolean DEFAULT false NOT NULL,
	"due_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_grant_id_grants_id_fk" FOREIGN KEY ("grant_id") REFERENCES "public"."grants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_credential_id_credentials_id_fk" FOREIGN KEY ("credential_id") REFERENCES "public"."credentials"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "pending_changes_change_id_index" ON "pending_changes" USING btree ("change_id");--> statement-breakpoint
CREATE INDEX "pending_changes_due_at_index" ON "pending_changes" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "credentials_kept_index" ON "credentials" USING btree ("id") WHERE "credentials"."sealed" <> '';--> statement-breakpoint
CREATE INDEX "grants_credential_index" ON "grants" USING btree ("credential_id") WHERE "grants"."credential_id" is not null;--> statement-breakpoint
CREATE INDEX "virtual_keys_credential_id_index" ON "virtual_keys" USING btree ("credential_id");