import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './src/tables/tables.ts',
    './src/tables/ledger-tables.ts',
    './src/tables/webhook-tables.ts',
    './src/tables/console-tables.ts',
    './src/tables/budget-tables.ts',
    './src/tables/alert-tables.ts',
  ],
  out: './migrations',
  casing: 'snake_case',
});
