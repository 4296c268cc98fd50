import type { GrantRef } from '@presign/limits';
import { type Conditions, isJsonObject, type JsonObject, type McpServerPolicy } from '@presign/schema';
import { LRUCache } from 'lru-cache';
import { KnownValues } from '../json/known-values.ts';
import { RulesMemory } from './call-rules.ts';
import { ToolMemory, type ToolRules } from './tool-rules.ts';
import type { VerifiedGrant } from './verify.ts';

/**
 * The part of a grant that is not in its token. Only `costLimited`, `tokenLimited` and the windows of shared budgets change during the life
 * of a grant. `admit` refuses a call that was planned without a new limit, or for a window that is over.
 */
export type Policy = {
  readonly ref: GrantRef;
  readonly accountId: string;
  /** The API key that issued it. Undefined: not recorded. */
  readonly apiKeyId: string | undefined;
  readonly virtualKeyId: string | undefined;
  readonly externalUser: string | undefined;
  readonly config: JsonObject | undefined;
  /** The models that its calls may use. Undefined: all. */
  readonly models?: readonly string[] | undefined;
  readonly conditions?: Conditions | undefined;
  /** Only for the grant of an MCP server. */
  readonly server: McpServerPolicy | undefined;
  /** Whether any of its budgets limits spending. */
  readonly costLimited: boolean;
  /** Whether its own budget limits tokens per minute, or a shared budget limits tokens in total. */
  readonly tokenLimited?: boolean | undefined;
  /** The shared budgets whose windows are the last of `ref.budgetIds`, in the same order. */
  readonly sharedIds: readonly string[];
};

/** A stored credential of one version, encrypted. */
export type SealedCredential = { readonly version: number; readonly sealed: string };

/** The gateway's cache of grants. It has no counters, and no secret in plain text. */
export type GrantMemory = {
  readonly policies: LRUCache<string, Policy>;
  /** The rules that their policies are compiled to. */
  readonly rules: RulesMemory;
  readonly tools: ToolMemory<ToolRules>;
  readonly values: KnownValues;
  readonly credentials: LRUCache<string, SealedCredential>;
};

export const grantMemory = (): GrantMemory => ({
  // `remember` states the size of a policy.
  policies: new LRUCache({ maxSize: POLICIES_BYTES }),
  rules: new RulesMemory(RULES_BYTES),
  tools: new ToolMemory(TOOLS_BYTES),
  values: new KnownValues(VALUES_BYTES),
  credentials: new LRUCache({
    maxSize: CREDENTIALS_BYTES,
    sizeCalculation: ({ sealed }) => sealed.length + ENTRY_BYTES,
  }),
});

/** Room for the policies of as many grants as the verifier has tokens, unless their `config` is long. */
const POLICIES_BYTES = 48 * 1024 * 1024;
/** Room for the rules of as many grants, unless their `config` is long. */
const RULES_BYTES = 32 * 1024 * 1024;
const TOOLS_BYTES = 16 * 1024 * 1024;
const VALUES_BYTES = 24 * 1024 * 1024;
const CREDENTIALS_BYTES = 16 * 1024 * 1024;
/** An entry of the memory, without its longest text. */
const ENTRY_BYTES = 500;

/** Caches a policy. Its size counts as twice its text in Redis: once for the text, and once for its parts. */
export const remember = ({ policies }: GrantMemory, policy: Policy, doc: string): void =>
  void policies.set(policy.ref.id, policy, { size: 2 * doc.length + ENTRY_BYTES });

/** Caches a credential that was read with its grant, unless the cache has the same or a newer version. */
export function rememberSealed(
  { credentials }: GrantMemory,
  id: string,
  version: number,
  sealed: string,
): void {
  if ((credentials.peek(id)?.version ?? 0) < version) credentials.set(id, { version, sealed });
}

/** The policy as Redis stores it, with short names. */
type Doc = {
  acc: string;
  crd: string;
  budget: string[];
  shr?: readonly string[];
  key?: string;
  vky?: string;
  usr?: string;
  cfg?: JsonObject;
  mdl?: readonly string[];
  cnd?: Conditions;
  srv?: McpServerPolicy;
  lim?: true;
  tpm?: true;
};

export function writeDoc(policy: Policy): string {
  const { ref, accountId, apiKeyId, virtualKeyId, externalUser, config, models, server } = policy;
  const { conditions, costLimited, tokenLimited, sharedIds } = policy;
  const doc: Doc = {
    acc: accountId,
    crd: ref.credentialId,
    budget: [...ref.budgetIds],
    ...(sharedIds.length === 0 ? {} : { shr: sharedIds }),
    ...(apiKeyId === undefined ? {} : { key: apiKeyId }),
    ...(virtualKeyId === undefined ? {} : { vky: virtualKeyId }),
    ...(externalUser === undefined ? {} : { usr: externalUser }),
    ...(config === undefined ? {} : { cfg: config }),
    ...(models === undefined ? {} : { mdl: models }),
    ...(conditions === undefined ? {} : { cnd: conditions }),
    ...(server === undefined ? {} : { srv: server }),
    ...(costLimited ? { lim: true as const } : {}),
    ...(tokenLimited ? { tpm: true as const } : {}),
  };
  return JSON.stringify(doc);
}

export function readDoc(grant: VerifiedGrant, text: string): Policy {
  const doc = JSON.parse(text) as Doc;
  return {
    ref: {
      id: grant.id,
      partition: grant.partition,
      accountId: doc.acc,
      credentialId: doc.crd,
      budgetIds: doc.budget,
    },
    accountId: doc.acc,
    apiKeyId: doc.key,
    virtualKeyId: doc.vky,
    externalUser: doc.usr,
    config: isJsonObject(doc.cfg) ? doc.cfg : undefined,
    models: doc.mdl,
    conditions: doc.cnd,
    server: doc.srv,
    costLimited: doc.lim === true,
    tokenLimited: doc.tpm === true,
    sharedIds: doc.shr ?? [],
  };
}
