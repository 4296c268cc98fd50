import * as z from 'zod';
import {
  CONFIG_MAX_BYTES,
  DEFAULT_EXPIRES_IN,
  EXTERNAL_ID_MAX_CHARS,
  METADATA_MAX_BYTES,
  unixSecondsOr,
} from '../fields/fields.ts';
import {
  type LimitRange,
  limitRange,
  llmRangeFields,
  llmRanges,
  mcpRangeFields,
  mcpRanges,
} from '../fields/limits.ts';
import { PAGE_DEFAULT, PAGE_MAX } from '../fields/page.ts';
import { accountLimits } from './accounts.ts';
import { scope } from './keys.ts';
import { MCP_TOOLS_MAX } from './mcp/tools.ts';
import { MCP_EXPIRES_IN, MCP_SERVERS_MAX } from './mcp-presign.ts';
import { keyPolicyAnswer } from './policy.ts';
import { MODELS_MAX, ONE_YEAR_SECONDS, PATHS_MAX, PATHS_MAX_BYTES } from './presign.ts';
import { USAGE_GROUPS_MAX } from './usage/reports.ts';

/** Limits of every request to the issuer. `body_bytes` has room for 64 KB of metadata in JSON's longest escapes. */
export const REQUEST_LIMITS = {
  body_bytes: 1_048_576,
  /** Checked before a body is parsed: 1 MiB of nested lists kept the issuer busy for 4 seconds. */
  body_depth: 100,
  /** A bundle of 100 servers with prices for 300 tools each stays below. */
  body_values: 50_000,
  page_default: PAGE_DEFAULT,
  page_maximum: PAGE_MAX,
  usage_groups: USAGE_GROUPS_MAX,
  idempotency_key_seconds: 86_400,
  webhooks: 20,
  alerts: 20,
} as const;

/** The range of `expires_in` without a policy. */
const validity = (minimum: number, maximum: number): LimitRange => ({
  minimum,
  maximum,
  default: DEFAULT_EXPIRES_IN,
  required: false,
});

/** The limits of an API key without a policy. */
export const ISSUE_LIMITS = {
  presign: {
    expires_in: validity(1, ONE_YEAR_SECONDS),
    ...llmRanges,
    paths: PATHS_MAX,
    path_bytes: PATHS_MAX_BYTES,
    models: MODELS_MAX,
    config_bytes: CONFIG_MAX_BYTES,
    metadata_bytes: METADATA_MAX_BYTES,
    external_id_chars: EXTERNAL_ID_MAX_CHARS,
  },
  mcp_presign: {
    expires_in: validity(MCP_EXPIRES_IN.least, MCP_EXPIRES_IN.most),
    ...mcpRanges,
    servers: MCP_SERVERS_MAX,
    tools: MCP_TOOLS_MAX,
    metadata_bytes: METADATA_MAX_BYTES,
    external_id_chars: EXTERNAL_ID_MAX_CHARS,
  },
};

const most = (description: string) => z.int().meta({ description });

const expiresIn = limitRange.meta({ description: 'Seconds.' });
const ofBoth = {
  metadata_bytes: most('Bytes of `metadata` as JSON.'),
  external_id_chars: most('Characters of `external_session` and of `external_user`.'),
};

/** Answer of `GET /v1/limits`. */
export const limitsAnswer = z
  .strictObject({
    api_key: z
      .strictObject({
        id: z.guid(),
        name: z.string(),
        scopes: z.array(scope),
        expires_at: unixSecondsOr('never'),
        requests_per_minute: most('Requests that it may make in a minute.'),
        policy: keyPolicyAnswer.nullable().meta({ description: 'The URLs that it may issue. null: all.' }),
      })
      .meta({ id: 'ApiKeyOfRequest', description: 'The API key of the request.' }),
    account: accountLimits,
    account_name: z.string().meta({ description: 'The name of the account of the API key.' }),
    usage_metadata: z.array(z.string()).meta({
      description: 'The keys of `metadata` by which usage is summed: `USAGE_METADATA` of the operator.',
    }),
    presign: z
      .strictObject({
        expires_in: expiresIn,
        ...llmRangeFields,
        paths: most('Paths of a URL.'),
        path_bytes: most('Bytes of all paths together.'),
        models: most('Entries of `models`.'),
        config_bytes: most('Bytes of `config` as JSON.'),
        ...ofBoth,
      })
      .meta({ id: 'PresignLimits' })
      .nullable()
      .meta({ description: '`POST /v1/presign` with this API key. null: it may not issue such URLs.' }),
    mcp_presign: z
      .strictObject({
        expires_in: expiresIn,
        ...mcpRangeFields,
        servers: most('Servers of a bundle.'),
        tools: most('Entries of `tools` of a server.'),
        ...ofBoth,
      })
      .meta({ id: 'McpPresignLimits' })
      .nullable()
      .meta({ description: '`POST /v2/mcp-presign` with this API key. null: it may not issue bundles.' }),
    requests: z
      .strictObject({
        body_bytes: most('Bytes of a body.'),
        body_depth: most('Levels that a body may nest.'),
        body_values: most('Values and names in a body.'),
        page_default: most('Entries of a page without `limit`.'),
        page_maximum: most('The largest `limit` of a list.'),
        usage_groups: most('The largest `limit` of `GET /v1/usage`.'),
        idempotency_key_seconds: most('How long an `Idempotency-Key` is remembered.'),
        webhooks: most('Endpoints of an account.'),
        alerts: most('Alerts of an account.'),
      })
      .meta({ id: 'RequestLimits', description: 'Every request to this API.' }),
  })
  .meta({ id: 'Limits' });
export type LimitsAnswer = z.infer<typeof limitsAnswer>;
