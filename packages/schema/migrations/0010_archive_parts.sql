CREATE TABLE "archive_parts" (
	"name" text PRIMARY KEY NOT NULL,
	"job" text NOT NULL,
	"body" text NOT NULL,
	"claimed_until" timestamp with time zone DEFAULT now() NOT NULL,
	"created_at" timestamp with time zone DEFAULT now() NOT NULL
);
