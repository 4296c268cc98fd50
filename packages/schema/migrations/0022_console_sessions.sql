CREATE TABLE "console_sessions" (
	"hash" text PRIMARY KEY NOT NULL,
	"api_key_id" uuid NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
ALTER TABLE "console_sessions" ADD CONSTRAINT "console_sessions_api_key_id_api_keys_id_fk" FOREIGN KEY ("api_key_id") REFERENCES "public"."api_keys"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "console_sessions_api_key_id_expires_at_index" ON "console_sessions" USING btree ("api_key_id","expires_at");--> statement-breakpoint
CREATE INDEX "console_sessions_expires_at_index" ON "console_sessions" USING btree ("expires_at");