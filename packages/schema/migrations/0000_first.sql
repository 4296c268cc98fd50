CREATE TABLE "accounts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"name" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"suspended_at" timestamp with time zone,
	"deleted_at" timestamp with time zone,
	"limits" text,
	"revision" integer DEFAULT 1 NOT NULL,
	"version" integer DEFAULT 0 NOT NULL,
	"has_budgets" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "api_keys" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"hash" text NOT NULL,
	"hint" text NOT NULL,
	"scopes" text[] NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"expires_at" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"last_used_at" timestamp with time zone,
	"requests_per_minute" integer,
	"policy" text,
	"revision" integer DEFAULT 1 NOT NULL,
	"revoking_after" timestamp with time zone,
	CONSTRAINT "api_keys_hash_unique" UNIQUE("hash")
);
--> statement-breakpoint
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
CREATE TABLE "budgets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"partition" smallint NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"max_uses" bigint,
	"cost_limit_microusd" bigint,
	"calls_per_minute" integer,
	"calls_per_day" integer,
	"concurrent_calls" integer,
	"tokens_per_minute" integer,
	"token_limit" bigint,
	"used" bigint DEFAULT 0 NOT NULL,
	"settled_microusd" bigint DEFAULT 0 NOT NULL,
	"used_tokens" bigint DEFAULT 0 NOT NULL,
	"announced_uses_percent" smallint DEFAULT 0 NOT NULL,
	"announced_cost_percent" smallint DEFAULT 0 NOT NULL,
	"announced_tokens_percent" smallint DEFAULT 0 NOT NULL,
	"shared_id" uuid,
	"starts_at" timestamp with time zone,
	"ends_at" timestamp with time zone,
	"reset_announced" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "credentials" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"sealed" text NOT NULL,
	"version" integer DEFAULT 1 NOT NULL,
	"revoked_at" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "grants" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"session_id" uuid NOT NULL,
	"budget_id" uuid NOT NULL,
	"credential_id" uuid,
	"virtual_key_id" text,
	"kind" text NOT NULL,
	"api_key_id" uuid,
	"provider" text NOT NULL,
	"method" text,
	"paths" text,
	"config" text,
	"models" text,
	"conditions" text,
	"bundle_id" uuid,
	"server" text,
	"external_session" text,
	"external_user" text,
	"metadata" text,
	"shared_budget_ids" uuid[],
	"issued_at" timestamp with time zone NOT NULL,
	"expires_at" timestamp with time zone NOT NULL,
	"signed_until" timestamp with time zone,
	"revoked_at" timestamp with time zone,
	"expiry_announced" boolean DEFAULT false NOT NULL
);
--> statement-breakpoint
CREATE TABLE "idempotency_keys" (
	"account_id" uuid NOT NULL,
	"route" text NOT NULL,
	"key" text NOT NULL,
	"body_mac" text NOT NULL,
	"grant_id" uuid NOT NULL,
	"answer" text,
	"created_at" timestamp with time zone NOT NULL,
	CONSTRAINT "idempotency_keys_account_id_route_key_pk" PRIMARY KEY("account_id","route","key")
);
--> statement-breakpoint
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
CREATE TABLE "oauth_tokens" (
	"credential_id" uuid PRIMARY KEY NOT NULL,
	"origin" text NOT NULL,
	"sealed" text,
	"version" integer DEFAULT 0 NOT NULL,
	"leased_until" timestamp with time zone,
	CONSTRAINT "oauth_tokens_origin_unique" UNIQUE("origin")
);
--> statement-breakpoint
CREATE TABLE "pending_changes" (
	"id" uuid PRIMARY KEY DEFAULT gen_random_uuid() NOT NULL,
	"change_id" uuid NOT NULL,
	"grant_id" uuid,
	"credential_id" uuid,
	"account_id" uuid,
	"budget_id" uuid,
	"done" boolean DEFAULT false NOT NULL,
	"due_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "price_lists" (
	"source" text PRIMARY KEY NOT NULL,
	"id" text NOT NULL,
	"list" text NOT NULL,
	"dated_at" timestamp with time zone NOT NULL,
	"offered_id" text,
	"offered" text,
	"offered_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "sessions" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	"name" text,
	"metadata" text,
	"revision" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "virtual_keys" (
	"id" text PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"provider" text NOT NULL,
	"credential_id" uuid NOT NULL,
	"config" text,
	"budget_id" uuid,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revoked_at" timestamp with time zone,
	"revision" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "archive_parts" (
	"name" text PRIMARY KEY NOT NULL,
	"job" text NOT NULL,
	"body" text NOT NULL,
	"claimed_until" timestamp with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "ledger" (
	"hold_id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"session_id" uuid NOT NULL,
	"grant_id" uuid NOT NULL,
	"api_key_id" uuid,
	"virtual_key_id" text,
	"request_id" uuid,
	"provider" text NOT NULL,
	"model" text,
	"server" text,
	"tool" text,
	"external_user" text,
	"uses" integer NOT NULL,
	"cost_microusd" bigint,
	"overrun_microusd" bigint DEFAULT 0 NOT NULL,
	"held_microusd" bigint,
	"price_list" text,
	"knowledge" text,
	"price_lines" text,
	"input_tokens" bigint,
	"output_tokens" bigint,
	"status" integer,
	"outcome" text NOT NULL,
	"failure" text,
	"started_at" timestamp with time zone NOT NULL,
	"settled_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "partitions" (
	"id" smallint PRIMARY KEY NOT NULL,
	"epoch" integer NOT NULL,
	"last_id" text NOT NULL
);
--> statement-breakpoint
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
CREATE TABLE "usage_marks" (
	"account_id" uuid PRIMARY KEY NOT NULL,
	"summed_until" timestamp with time zone NOT NULL,
	"kept_from" timestamp with time zone,
	"sums_from" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "pending_usage" (
	"hold_id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhook_deliveries" (
	"id" uuid PRIMARY KEY NOT NULL,
	"webhook_id" uuid NOT NULL,
	"event_id" uuid NOT NULL,
	"status" text DEFAULT 'pending' NOT NULL,
	"attempts" integer DEFAULT 0 NOT NULL,
	"claims" integer DEFAULT 0 NOT NULL,
	"next_try_at" timestamp with time zone DEFAULT now() NOT NULL,
	"last_status" integer,
	"last_error" text,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"delivered_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "webhook_events" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"type" text NOT NULL,
	"payload" text NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
--> statement-breakpoint
CREATE TABLE "webhooks" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"url" text NOT NULL,
	"description" text,
	"events" text[],
	"sealed" text NOT NULL,
	"previous_sealed" text,
	"previous_until" timestamp with time zone,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"active_since" timestamp with time zone DEFAULT now() NOT NULL,
	"failing_since" timestamp with time zone,
	"disabled_at" timestamp with time zone,
	"disabled_reason" text,
	"revision" integer DEFAULT 1 NOT NULL
);
--> statement-breakpoint
CREATE TABLE "console_sessions" (
	"hash" text PRIMARY KEY NOT NULL,
	"api_key_id" uuid NOT NULL,
	"expires_at" timestamp with time zone NOT NULL
);
--> statement-breakpoint
CREATE TABLE "budget_calendars" (
	"id" text PRIMARY KEY NOT NULL,
	"kind" text NOT NULL,
	"time_zone" text NOT NULL,
	"anchor" timestamp with time zone,
	"known_until" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "budget_windows" (
	"calendar_id" text NOT NULL,
	"starts_at" timestamp with time zone NOT NULL,
	"ends_at" timestamp with time zone,
	CONSTRAINT "budget_windows_calendar_id_starts_at_pk" PRIMARY KEY("calendar_id","starts_at")
);
--> statement-breakpoint
CREATE TABLE "shared_budgets" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text,
	"partition" smallint NOT NULL,
	"scope" text NOT NULL,
	"scope_key" text DEFAULT '' NOT NULL,
	"scope_value" text NOT NULL,
	"is_template" boolean DEFAULT false NOT NULL,
	"template_id" uuid,
	"calendar_id" text NOT NULL,
	"window" text NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"inherits" boolean DEFAULT false NOT NULL,
	"max_uses" bigint,
	"cost_limit_microusd" bigint,
	"token_limit" bigint,
	"thresholds" smallint[] DEFAULT '{50,80,100}' NOT NULL,
	"created_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "api_keys" ADD CONSTRAINT "api_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "credentials" ADD CONSTRAINT "credentials_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "grants" ADD CONSTRAINT "grants_session_id_sessions_id_fk" FOREIGN KEY ("session_id") REFERENCES "public"."sessions"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "grants" ADD CONSTRAINT "grants_budget_id_budgets_id_fk" FOREIGN KEY ("budget_id") REFERENCES "public"."budgets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "grants" ADD CONSTRAINT "grants_credential_id_credentials_id_fk" FOREIGN KEY ("credential_id") REFERENCES "public"."credentials"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "grants" ADD CONSTRAINT "grants_virtual_key_id_virtual_keys_id_fk" FOREIGN KEY ("virtual_key_id") REFERENCES "public"."virtual_keys"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "oauth_tokens" ADD CONSTRAINT "oauth_tokens_credential_id_credentials_id_fk" FOREIGN KEY ("credential_id") REFERENCES "public"."credentials"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_grant_id_grants_id_fk" FOREIGN KEY ("grant_id") REFERENCES "public"."grants"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_credential_id_credentials_id_fk" FOREIGN KEY ("credential_id") REFERENCES "public"."credentials"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pending_changes" ADD CONSTRAINT "pending_changes_budget_id_budgets_id_fk" FOREIGN KEY ("budget_id") REFERENCES "public"."budgets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "sessions" ADD CONSTRAINT "sessions_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "virtual_keys" ADD CONSTRAINT "virtual_keys_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "virtual_keys" ADD CONSTRAINT "virtual_keys_credential_id_credentials_id_fk" FOREIGN KEY ("credential_id") REFERENCES "public"."credentials"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "virtual_keys" ADD CONSTRAINT "virtual_keys_budget_id_budgets_id_fk" FOREIGN KEY ("budget_id") REFERENCES "public"."budgets"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "pending_usage" ADD CONSTRAINT "pending_usage_hold_id_ledger_hold_id_fk" FOREIGN KEY ("hold_id") REFERENCES "public"."ledger"("hold_id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "public"."webhooks"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhook_deliveries" ADD CONSTRAINT "webhook_deliveries_event_id_webhook_events_id_fk" FOREIGN KEY ("event_id") REFERENCES "public"."webhook_events"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "webhooks" ADD CONSTRAINT "webhooks_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "console_sessions" ADD CONSTRAINT "console_sessions_api_key_id_api_keys_id_fk" FOREIGN KEY ("api_key_id") REFERENCES "public"."api_keys"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "budget_windows" ADD CONSTRAINT "budget_windows_calendar_id_budget_calendars_id_fk" FOREIGN KEY ("calendar_id") REFERENCES "public"."budget_calendars"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD CONSTRAINT "shared_budgets_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD CONSTRAINT "shared_budgets_calendar_id_budget_calendars_id_fk" FOREIGN KEY ("calendar_id") REFERENCES "public"."budget_calendars"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "audit_account_id_at_index" ON "audit" USING btree ("account_id","at");--> statement-breakpoint
CREATE INDEX "audit_account_id_target_id_at_index" ON "audit" USING btree ("account_id","target_id","at");--> statement-breakpoint
CREATE INDEX "audit_at_index" ON "audit" USING btree ("at");--> statement-breakpoint
CREATE UNIQUE INDEX "budgets_window_index" ON "budgets" USING btree ("shared_id","starts_at") WHERE "budgets"."shared_id" is not null;--> statement-breakpoint
CREATE INDEX "budgets_ended_index" ON "budgets" USING btree ("ends_at") WHERE "budgets"."ends_at" is not null;--> statement-breakpoint
CREATE INDEX "budgets_reset_index" ON "budgets" USING btree ("ends_at") WHERE "budgets"."ends_at" is not null and not "budgets"."reset_announced";--> statement-breakpoint
CREATE INDEX "credentials_kept_index" ON "credentials" USING btree ("id") WHERE "credentials"."sealed" <> '';--> statement-breakpoint
CREATE INDEX "grants_session_id_index" ON "grants" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "grants_budget_id_index" ON "grants" USING btree ("budget_id");--> statement-breakpoint
CREATE INDEX "grants_expires_at_index" ON "grants" USING btree ("expires_at");--> statement-breakpoint
CREATE INDEX "grants_credential_index" ON "grants" USING btree ("credential_id") WHERE "grants"."credential_id" is not null;--> statement-breakpoint
CREATE INDEX "grants_expiry_index" ON "grants" USING btree ("account_id","expires_at") WHERE not "grants"."expiry_announced" and "grants"."revoked_at" is null and "grants"."bundle_id" is null;--> statement-breakpoint
CREATE INDEX "grants_live_index" ON "grants" USING btree ("account_id","expires_at") WHERE "grants"."revoked_at" is null;--> statement-breakpoint
CREATE INDEX "grants_bundle_id_index" ON "grants" USING btree ("bundle_id") WHERE "grants"."bundle_id" is not null;--> statement-breakpoint
CREATE INDEX "grants_api_key_id_issued_at_index" ON "grants" USING btree ("api_key_id","issued_at") WHERE "grants"."api_key_id" is not null;--> statement-breakpoint
CREATE INDEX "grants_account_id_external_user_index" ON "grants" USING btree ("account_id","external_user") WHERE "grants"."external_user" is not null;--> statement-breakpoint
CREATE INDEX "grants_account_id_external_session_index" ON "grants" USING btree ("account_id","external_session") WHERE "grants"."external_session" is not null;--> statement-breakpoint
CREATE INDEX "idempotency_keys_created_at_index" ON "idempotency_keys" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "pending_changes_change_id_index" ON "pending_changes" USING btree ("change_id");--> statement-breakpoint
CREATE INDEX "pending_changes_due_at_index" ON "pending_changes" USING btree ("due_at");--> statement-breakpoint
CREATE INDEX "pending_changes_grant_id_index" ON "pending_changes" USING btree ("grant_id") WHERE "pending_changes"."grant_id" is not null;--> statement-breakpoint
CREATE INDEX "pending_changes_credential_id_index" ON "pending_changes" USING btree ("credential_id") WHERE "pending_changes"."credential_id" is not null;--> statement-breakpoint
CREATE INDEX "pending_changes_account_id_index" ON "pending_changes" USING btree ("account_id") WHERE "pending_changes"."account_id" is not null;--> statement-breakpoint
CREATE INDEX "pending_changes_budget_id_index" ON "pending_changes" USING btree ("budget_id") WHERE "pending_changes"."budget_id" is not null;--> statement-breakpoint
CREATE INDEX "sessions_account_id_created_at_index" ON "sessions" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "virtual_keys_account_id_index" ON "virtual_keys" USING btree ("account_id");--> statement-breakpoint
CREATE INDEX "virtual_keys_credential_id_index" ON "virtual_keys" USING btree ("credential_id");--> statement-breakpoint
CREATE INDEX "virtual_keys_budget_id_index" ON "virtual_keys" USING btree ("budget_id");--> statement-breakpoint
CREATE INDEX "ledger_account_id_settled_at_index" ON "ledger" USING btree ("account_id","settled_at");--> statement-breakpoint
CREATE INDEX "ledger_grant_id_index" ON "ledger" USING btree ("grant_id");--> statement-breakpoint
CREATE INDEX "ledger_session_id_index" ON "ledger" USING btree ("session_id");--> statement-breakpoint
CREATE INDEX "ledger_request_id_index" ON "ledger" USING btree ("request_id") WHERE "ledger"."request_id" is not null;--> statement-breakpoint
CREATE INDEX "ledger_account_id_external_user_settled_at_index" ON "ledger" USING btree ("account_id","external_user","settled_at") WHERE "ledger"."external_user" is not null;--> statement-breakpoint
CREATE INDEX "usage_days_account_id_day_index" ON "usage_days" USING btree ("account_id","day");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_webhook_id_created_at_index" ON "webhook_deliveries" USING btree ("webhook_id","created_at");--> statement-breakpoint
CREATE INDEX "webhook_deliveries_due_index" ON "webhook_deliveries" USING btree ("webhook_id","next_try_at") WHERE "webhook_deliveries"."status" = 'pending';--> statement-breakpoint
CREATE INDEX "webhook_deliveries_event_id_index" ON "webhook_deliveries" USING btree ("event_id");--> statement-breakpoint
CREATE INDEX "webhook_events_created_at_index" ON "webhook_events" USING btree ("created_at");--> statement-breakpoint
CREATE INDEX "webhooks_account_id_created_at_index" ON "webhooks" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "console_sessions_api_key_id_expires_at_index" ON "console_sessions" USING btree ("api_key_id","expires_at");--> statement-breakpoint
CREATE INDEX "console_sessions_expires_at_index" ON "console_sessions" USING btree ("expires_at");--> statement-breakpoint
CREATE UNIQUE INDEX "shared_budgets_scope_index" ON "shared_budgets" USING btree ("account_id","scope","scope_key","scope_value","window","is_template") WHERE "shared_budgets"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "shared_budgets_account_id_created_at_index" ON "shared_budgets" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "shared_budgets_template_id_index" ON "shared_budgets" USING btree ("template_id") WHERE "shared_budgets"."template_id" is not null;