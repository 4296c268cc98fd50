import type { ledger } from '@presign/schema/ledger-tables';

export type LedgerRow = typeof ledger.$inferSelect;

export const toSeconds = (time: Date) => time.getTime() / 1000;

/** The fields of a call that both the API and its events have. */
export const describeLedgerRow = (row: LedgerRow) => ({
  request_id: row.requestId,
  api_key: row.apiKeyId,
  session_id: row.sessionId,
  grant_id: row.grantId,
  external_user: row.externalUser,
  provider: row.provider,
  model: row.model,
  server: row.server,
  tool: row.tool,
  uses: row.uses,
  cost: row.costMicrousd,
  overrun: row.overrunMicrousd,
  input_tokens: row.inputTokens,
  output_tokens: row.outputTokens,
  status: row.status,
  outcome: row.outcome,
  started_at: toSeconds(row.startedAt),
  settled_at: toSeconds(row.settledAt),
});
