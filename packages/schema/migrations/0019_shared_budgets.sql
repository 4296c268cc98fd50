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
	"scope_value" text NOT NULL,
	"is_template" boolean DEFAULT false NOT NULL,
	"template_id" uuid,
	"calendar_id" text NOT NULL,
	"window" text NOT NULL,
	"revision" integer DEFAULT 1 NOT NULL,
	"inherits" boolean DEFAULT false NOT NULL,
	"max_uses" bigint,
	"cost_limit_microusd" bigint,
	"created_at" timestamp with time zone NOT NULL,
	"deleted_at" timestamp with time zone
);
--> statement-breakpoint
ALTER TABLE "accounts" ADD COLUMN "has_budgets" boolean DEFAULT false NOT NULL;--> statement-breakpoint
ALTER TABLE "budgets" ADD COLUMN "shared_id" uuid;--> statement-breakpoint
ALTER TABLE "budgets" ADD COLUMN "starts_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "budgets" ADD COLUMN "ends_at" timestamp with time zone;--> statement-breakpoint
ALTER TABLE "grants" ADD COLUMN "shared_budget_ids" uuid[];--> statement-breakpoint
ALTER TABLE "budget_windows" ADD CONSTRAINT "budget_windows_calendar_id_budget_calendars_id_fk" FOREIGN KEY ("calendar_id") REFERENCES "public"."budget_calendars"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD CONSTRAINT "shared_budgets_account_id_accounts_id_fk" FOREIGN KEY ("account_id") REFERENCES "public"."accounts"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
ALTER TABLE "shared_budgets" ADD CONSTRAINT "shared_budgets_calendar_id_budget_calendars_id_fk" FOREIGN KEY ("calendar_id") REFERENCES "public"."budget_calendars"("id") ON DELETE no action ON UPDATE no action;--> statement-breakpoint
CREATE UNIQUE INDEX "shared_budgets_scope_index" ON "shared_budgets" USING btree ("account_id","scope","scope_value","window","is_template") WHERE "shared_budgets"."deleted_at" is null;--> statement-breakpoint
CREATE INDEX "shared_budgets_account_id_created_at_index" ON "shared_budgets" USING btree ("account_id","created_at");--> statement-breakpoint
CREATE INDEX "shared_budgets_template_id_index" ON "shared_budgets" USING btree ("template_id") WHERE "shared_budgets"."template_id" is not null;--> statement-breakpoint
CREATE UNIQUE INDEX "budgets_window_index" ON "budgets" USING btree ("shared_id","starts_at") WHERE "budgets"."shared_id" is not null;--> statement-breakpoint
CREATE INDEX "budgets_ended_index" ON "budgets" USING btree ("ends_at") WHERE "budgets"."ends_at" is not null;