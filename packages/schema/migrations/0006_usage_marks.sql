CREATE TABLE "usage_marks" (
	"account_id" uuid PRIMARY KEY NOT NULL,
	"summed_until" timestamp with time zone NOT NULL,
	"kept_from" timestamp with time zone
);
