import { outcomeOf } from '@presign/schema';
import type { ledger } from '@presign/schema/ledger-tables';
import { unixSeconds } from '../answers/unix-seconds.ts';

export type LedgerRow = typeof ledger.$inferSelect;

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
  outcome: outcomeOf(row),
  started_at: unixSeconds(row.startedAt),
  settled_at: unixSeconds(row.settledAt),
});
