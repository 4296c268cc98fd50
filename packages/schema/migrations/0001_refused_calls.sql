CREATE TABLE "refusal_days" (
	"account_id" uuid NOT NULL,
	"day" date NOT NULL,
	"code" text NOT NULL,
	"name" text NOT NULL,
	"calls" numeric NOT NULL,
	CONSTRAINT "refusal_days_account_id_day_code_name_pk" PRIMARY KEY("account_id","day","code","name")
);
--> statement-breakpoint
CREATE TABLE "refused_calls" (
	"request_id" uuid NOT NULL,
	"refused_at" timestamp with time zone NOT NULL,
	"account_id" uuid NOT NULL,
	"session_id" uuid NOT NULL,
	"grant_id" uuid NOT NULL,
	"api_key_id" uuid,
	"virtual_key_id" text,
	"external_user" text,
	"provider" text NOT NULL,
	"model" text,
	"server" text,
	"tool" text,
	"status" integer NOT NULL,
	"code" text NOT NULL,
	"reason" text,
	"name" text,
	"figures" text,
	"body_bytes" bigint,
	CONSTRAINT "refused_calls_request_id_refused_at_pk" PRIMARY KEY("request_id","refused_at")
) PARTITION BY RANGE ("refused_at");
--> statement-breakpoint
CREATE TABLE "refused_marks" (
	"partition" smallint PRIMARY KEY NOT NULL,
	"last_id" text NOT NULL
);
--> statement-breakpoint
CREATE INDEX "refusal_days_day_index" ON "refusal_days" USING btree ("day");--> statement-breakpoint
CREATE INDEX "refused_calls_account_id_refused_at_index" ON "refused_calls" USING btree ("account_id","refused_at");--> statement-breakpoint
CREATE INDEX "refused_calls_grant_id_index" ON "refused_calls" USING btree ("grant_id");--> statement-breakpoint
CREATE INDEX "refused_calls_account_id_external_user_refused_at_index" ON "refused_calls" USING btree ("account_id","external_user","refused_at") WHERE "refused_calls"."external_user" is not null;