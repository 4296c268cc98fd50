DO $$ BEGIN
  IF EXISTS (SELECT FROM "virtual_keys" WHERE "budget_id" IS NULL) THEN
    RAISE EXCEPTION 'DATABASE_URL: the tables have virtual keys of a state of development whose calls were never counted, and cannot be updated. Use a new database';
  END IF;
END $$;--> statement-breakpoint
ALTER TABLE "virtual_keys" ALTER COLUMN "budget_id" SET NOT NULL;