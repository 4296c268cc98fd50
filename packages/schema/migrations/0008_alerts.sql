CREATE TABLE "alert_firings" (
	"id" uuid PRIMARY KEY NOT NULL,
	"alert_id" uuid NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"resolved_at" timestamp with time zone,
	"value" double precision NOT NULL,
	"threshold" double precision NOT NULL,
	"starts_at" timestamp with time zone,
	"ends_at" timestamp with time zone
);
--> statement-breakpoint
CREATE TABLE "alerts" (
	"id" uuid PRIMARY KEY NOT NULL,
	"account_id" uuid NOT NULL,
	"name" text NOT NULL,
	"condition" text NOT NULL,
	"webhook_id" uuid,
	"is_enabled" boolean NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"due_at" timestamp with time zone DEFAULT now() NOT NULL,
	"checked_at" timestamp with time zone,
	"value" double precision,
	"threshold" double precision,
	"condition_since" timestamp with time zone DEFAULT now() NOT NULL,
	"firing_id" uuid,
	"firing_since" timestamp with time zone,
	"held_window" timestamp with time zone,
	"held_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "webhooks" ADD COLUMN "format" text DEFAULT 'standard' NOT NULL;--> statement-breakpoint
ALTER TABLE "alert_firings" ADD CONSTRAINT "alert_firings_alert_id_alerts_id_fk" FOREIGN KEY ("alert_id") REFERENCES "public"."alerts"("id") ON DELETE cascade ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "alerts" ADD CONSTRAINT "alerts_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "alerts" ADD CONSTRAINT "alerts_webhook_id_webhooks_id_fk" FOREIGN KEY ("webhook_id") REFERENCES "public"."webhooks"("id") ON DELETE set null ON UPDATE no action;--> statement-breakpoint
CREATE INDEX "alert_firings_alert_id_created_at_index" ON "alert_firings" USING btree ("alert_id","created_at");--> statement-breakpoint
CREATE INDEX "alert_firings_old_index" ON "alert_firings" USING btree ("resolved_at") WHERE "alert_firings"."resolved_at" is not null;--> statement-breakpoint
CREATE INDEX "alerts_account_id_created_at_index" ON "alerts" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "alerts_webhook_index" ON "alerts" USING btree ("webhook_id") WHERE "alerts"."webhook_id" is not null;--> statement-breakpoint
CREATE INDEX "alerts_due_index" ON "alerts" USING btree ("due_at") WHERE "alerts"."is_enabled";