import { ISSUE_LIMITS, REQUEST_LIMITS, showLimits, UNLIMITED } from '@presign/schema';
import { alert, delivery, firing, ISSUED_AT, webhook, webhookWithSecret } from './example-alerts.ts';

/** The ids, times and names of all examples, so that the examples are consistent. */
const SESSION = '3f2504e0-4f89-41d3-9a0c-0305e82c3301';
const GRANT = '9f3c1b2a-7d4e-4c5f-8a6b-1e2d3c4b5a69';
const API_KEY = '5b0e7c1d-2f3a-4b6c-9d8e-7f6a5b4c3d2e';
const ACCOUNT = '1c9d4e5f-6a7b-4c8d-9e0f-1a2b3c4d5e6f';
const BUDGET = '7e1f2a3b-4c5d-4e6f-8a9b-0c1d2e3f4a5b';
const REQUEST = '0d9c8b7a-6f5e-4d3c-8b2a-190807060504';
const VIRTUAL_KEY = 'vk_7Qm2Zt9Xc4Lw';
const EXPIRES_AT = 1_767_225_600;
const USER = 'user-42';

const page = (entry: object) => ({ data: [entry], next_cursor: null });

const grant = {
  id: GRANT,
  kind: 'llm',
  provider: 'openai',
  method: 'POST',
  paths: ['/v1/chat/completions'],
  models: null,
  server: null,
  bundle_id: null,
  external_session: null,
  external_user: USER,
  virtual_key: null,
  api_key: API_KEY,
  metadata: { team: 'support' },
  issued_at: ISSUED_AT,
  expires_at: EXPIRES_AT,
  status: 'active',
  ...showLimits({ ...UNLIMITED, maxUses: 20, costLimitMicrousd: 250_000 }),
  conditions: null,
  shared_budgets: [BUDGET],
  revision: 1,
  settled: { used: 3, spent: 1_840 },
  live: { used: 4, spent: 1_840, held: 2_100 },
};

const ownGrant = { ...grant, session_id: SESSION, session_name: 'chat of user 42' };

const session = {
  id: SESSION,
  name: ownGrant.session_name,
  created_at: ISSUED_AT,
  revoked_at: null,
  status: 'active',
  grant_count: 1,
  expires_at: EXPIRES_AT,
  external_sessions: [],
  external_users: [USER],
  revision: 2,
};

const apiKey = {
  id: API_KEY,
  name: 'backend',
  scopes: ['presign'],
  hint: 'presign_sk_…x7Qa',
  created_at: ISSUED_AT,
  expires_at: 1_775_001_000,
  revoked_at: null,
  requests_per_minute: null,
  policy: {
    providers: ['openai'],
    models: ['gpt-4.1-mini'],
    highest: { cost_limit: 250_000, expires_in: 900 },
  },
  revision: 1,
  last_used_at: null,
};

/** No issuer creates this key, because its checksum is wrong. */
const newApiKey = { ...apiKey, key: `presign_sk_${'0123456789'.repeat(4)}ABCDEFx7Q` };

const account = {
  id: ACCOUNT,
  name: 'customer-a',
  created_at: ISSUED_AT,
  suspended_at: null,
  deleted_at: null,
  limits: { api_keys: null, sessions: null, urls_per_minute: null, cost_limit: 5_000_000 },
  revision: 1,
};

const accountUsage = {
  this_month: { from: 1_764_547_200, to: ISSUED_AT, calls: 1_204, cost: 41_250_000 },
  last_month: { from: 1_761_955_200, to: 1_764_547_200, calls: 1_102, cost: 38_900_000 },
  last_call_at: ISSUED_AT - 4,
  live_api_keys: 3,
  live_urls: 212,
};

const virtualKey = {
  id: VIRTUAL_KEY,
  name: 'production',
  provider: 'openai',
  config: { max_tokens: 500 },
  budget: {
    max_uses: null,
    cost_limit: 50_000_000,
    settled: { used: 3, spent: 1_840 },
    live: { used: 4, spent: 1_840, held: 2_100 },
  },
  version: 1,
  revision: 1,
  created_at: ISSUED_AT,
  revoked_at: null,
};

const template = {
  id: BUDGET,
  kind: 'template',
  name: null,
  scope: { external_user: '*' },
  template: null,
  max_uses: null,
  cost_limit: 5_000_000,
  tokens: null,
  thresholds: [50, 80, 100],
  visible: true,
  window: 'month',
  time_zone: 'UTC',
  anchor: null,
  revision: 1,
  current: null,
  created_at: ISSUED_AT,
  deleted_at: null,
};

const budget = {
  ...template,
  kind: 'budget',
  scope: { external_user: USER },
  template: 'd4c3b2a1-0f9e-4d8c-8b7a-6f5e4d3c2b1a',
  current: {
    starts_at: 1_767_225_600,
    ends_at: 1_769_904_000,
    settled: { used: 3, spent: 1_840, tokens: 2_450 },
    live: { used: 4, spent: 1_840, held: 2_100, tokens: 2_450, tokens_held: 1_300 },
  },
};

const call = {
  request_id: REQUEST,
  started_at: 1_767_225_060,
  settled_at: 1_767_225_062,
  outcome: 'passed',
  failure: null,
  status: 200,
  first_byte_ms: 412,
  own_ms: 0.9,
  total_ms: 1_630,
  retry_count: 0,
  user_agent: 'OpenAI/Python 2.8.0',
  connection: null,
  turn: null,
  session_id: SESSION,
  grant_id: GRANT,
  api_key: API_KEY,
  virtual_key: null,
  external_user: USER,
  metadata: { team: 'red' },
  provider: 'openai',
  model: 'gpt-4.1-mini',
  server: null,
  tool: null,
  uses: 1,
  input_tokens: 250,
  output_tokens: 500,
  hold: 2_100,
  cost: 900,
  overrun: 0,
  price_list: { source: 'bundled', id: '3d1f0c2b4a59' },
  knowledge: 'bundled:2026-11-20',
  refusal: null,
};

const sums = {
  calls: 3,
  uses: 3,
  cost: 1_840,
  failed_calls: 0,
  calls_of_unknown_cost: 0,
  input_tokens: 720,
  output_tokens: 1_730,
};

const auditEntry = {
  id: '6f7a8b9c-0d1e-4f2a-8b3c-4d5e6f7a8b9c',
  at: 1_767_225_120,
  actor: API_KEY,
  action: 'grant.changed',
  target: { kind: 'grant', id: GRANT },
  request_id: REQUEST,
  remote_address: '192.0.2.7',
  before: { max_uses: 20 },
  after: { max_uses: 500 },
};

const limits = {
  api_key: {
    id: API_KEY,
    name: 'Web backend',
    scopes: ['presign'],
    expires_at: null,
    requests_per_minute: 60_000,
    policy: null,
  },
  account: account.limits,
  account_name: 'Acme',
  usage_metadata: ['team'],
  ...ISSUE_LIMITS,
  requests: REQUEST_LIMITS,
};

const usage = {
  getUsage: {
    from: 1_767_225_600,
    to: 1_769_904_000,
    group_by: ['external_user', 'day'],
    next_cursor: null,
    groups: 1,
    data: [{ external_user: USER, day: '2026-01-01', ...sums }],
    total: sums,
  },
  getUsageHours: {
    from: 1_767_225_600,
    to: 1_767_312_000,
    data: [
      {
        hour: 1_767_225_600,
        calls: 3,
        failed_calls: 1,
        error_rate: 0.3333,
        outcomes: { passed: 2, provider_error: 1 },
        total_ms: { p50: 1_630, p95: 2_900 },
        first_byte_ms: { p50: 412, p95: 690 },
      },
    ],
  },
  getRefusals: {
    from: '2025-12-03',
    to: '2026-01-01',
    data: [{ day: '2026-01-01', code: 'rate_limited', calls: 2, names: [] }],
  },
  listCalls: page(call),
  getCall: {
    ...call,
    price_lines: [
      { unit: 'input_tokens', count: 250, rate: 400_000 },
      { unit: 'output_tokens', count: 500, rate: 1_600_000 },
    ],
    refunds: [],
  },
  listSimilarCalls: {
    data: [{ ...call, request_id: 'b8a79685-7463-4251-9a0f-1e2d3c4b5a69', retry_count: 1 }],
  },
  search: {
    data: [
      { kind: 'external_user', id: USER, name: USER },
      { kind: 'session', id: SESSION, name: 'Report of user 42' },
    ],
    complete: true,
  },
  listAudit: page(auditEntry),
};

/** An answer of each operation by its id. Those whose schema has an example of its own, or that have no body, are left out. */
export const EXAMPLES: Readonly<Record<string, object>> = {
  listSessions: page(session),
  getSession: { ...session, metadata: null, grants: [grant], next_cursor: null },
  changeSession: { ...session, metadata: null, changed: [{ id: GRANT, url: null }] },
  listGrants: page(ownGrant),
  getGrant: ownGrant,
  changeGrant: { ...ownGrant, max_uses: 500, revision: 2, url: null },
  ...usage,
  listModels: {
    lists: [{ source: 'bundled', id: '3d1f0c2b4a59', date: '2026-11-20', waits: false }],
    data: [
      {
        provider: 'openai',
        model: 'gpt-4.1-mini',
        source: 'bundled',
        date: '2026-11-20',
        rates: { input: 400_000, output: 1_600_000 },
      },
    ],
  },
  getLimits: limits,
  createVirtualKey: virtualKey,
  listVirtualKeys: page(virtualKey),
  getVirtualKey: virtualKey,
  changeVirtualKey: { ...virtualKey, revision: 2 },
  rotateVirtualKey: { ...virtualKey, version: 2 },
  createApiKey: newApiKey,
  listApiKeys: page(apiKey),
  getApiKey: apiKey,
  changeApiKey: { ...apiKey, requests_per_minute: 600, revision: 2 },
  createAccount: {
    ...account,
    api_key: { ...newApiKey, name: 'customer-a', scopes: ['admin'], policy: null },
  },
  listAccounts: page({ ...account, usage: accountUsage }),
  getAccount: account,
  getAccountUsage: accountUsage,
  changeAccount: { ...account, limits: { ...account.limits, urls_per_minute: 600 }, revision: 2 },
  createBudget: template,
  listBudgets: { data: [budget, template], next_cursor: null },
  getBudget: budget,
  changeBudget: { ...budget, cost_limit: 10_000_000, revision: 2 },
  createWebhook: webhookWithSecret,
  listWebhooks: page(webhook),
  getWebhook: webhook,
  changeWebhook: { ...webhook, events: ['grant.revoked', 'audit.entry'], revision: 2 },
  rotateWebhookSecret: { ...webhookWithSecret, previous_secret_expires_at: 1_767_311_400 },
  enableWebhook: webhook,
  testWebhook: delivery,
  listDeliveries: page(delivery),
  replayDelivery: { ...delivery, type: 'usage.settled' },
  createAlert: { ...alert, firing_since: null, value: null, threshold: null, checked_at: null },
  listAlerts: page(alert),
  getAlert: alert,
  changeAlert: { ...alert, enabled: false, firing_since: null, revision: 2 },
  testAlert: { ...delivery, type: 'alert.fired' },
  listFirings: page(firing),
  publicKeys: { keys: [{ kid: 'k4.pid.AbCdEf…', public_key: 'k4.public.GhIjKl…' }] },
};
