ALTER TABLE "usage_days" ADD COLUMN "pieces" smallint[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_days" ADD COLUMN "running" numeric[] DEFAULT '{}' NOT NULL;--> statement-breakpoint
ALTER TABLE "usage_marks" ADD COLUMN "divided_from" timestamp with time zone;--> statement-breakpoint
UPDATE "usage_marks" SET "divided_from" = date_trunc('day', "summed_until", 'UTC') + interval '2 days';