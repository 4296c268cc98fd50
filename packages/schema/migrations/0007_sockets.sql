ALTER TABLE "ledger" ADD COLUMN "connection_id" uuid;--> statement-breakpoint
ALTER TABLE "ledger" ADD COLUMN "turn" integer;