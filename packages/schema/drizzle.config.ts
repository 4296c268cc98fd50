import { defineConfig } from 'drizzle-kit';

export default defineConfig({
  dialect: 'postgresql',
  schema: [
    './src/tables.ts',
    './src/ledger-tables.ts',
    './src/webhook-tables.ts',
    './src/console/tables.ts',
    './src/budgets/tables.ts',
  ],
  out: './migrations',
  casing: 'snake_case',
});
