import { BlockList, isIP } from 'node:net';
import { isDeepStrictEqual } from 'node:util';
import { compilePaths, fieldOverFixed, type Provider } from '@presign/providers';
import {
  briefly,
  type Conditions,
  isJsonObject,
  type KeyPolicy,
  keyPolicy,
  LIMIT_NAMES,
  type LimitName,
  MCP_LIMIT_NAMES,
  type McpPresignRequest,
  ONE_YEAR_SECONDS,
  type PresignRequest,
  RefusedError,
} from '@presign/schema';
import type { ApiKey } from '../identity/caller.ts';

/** A field of a request that a policy forbids, and what the policy allows. */
type Violation = { readonly field: string; readonly allowed: string };

/**
 * The policy of an API key. A policy that this version cannot parse, such as one from a later version, allows nothing.
 * @throws RefusedError `policy_forbids`
 */
export function readPolicy({ policy }: ApiKey): KeyPolicy | undefined {
  if (policy === null) return undefined;
  const read = keyPolicy.safeParse(policy);
  if (read.success) return read.data;
  throw new RefusedError({ code: 'policy_forbids', message: UNREADABLE });
}

const UNREADABLE =
  'The policy of this API key has a field that this version does not know, so nothing is issued. Update the issuer.';

/** A request, its provider, and the body as the caller wrote it. */
type Asked = {
  readonly provider: Provider;
  readonly request: PresignRequest;
  readonly pathNames: readonly string[];
  readonly body: unknown;
};

/**
 * The request of an LLM URL with the fields that a policy sets.
 * @throws RefusedError `policy_forbids` that names every violation
 */
export function obeyPolicy(
  policy: KeyPolicy | undefined,
  { provider, request, pathNames, body }: Asked,
): PresignRequest {
  if (policy === undefined) return request;
  const { providers, virtual_keys: keys, config: fixed } = policy;
  const own = request.config ?? {};
  refuse([
    ...unless(!providers || providers.includes(request.provider), 'provider', oneOf(providers)),
    ...pathsForbidden(policy, request.path, pathNames),
    ...unless(
      !keys || (request.virtual_key !== undefined && keys.includes(request.virtual_key)),
      'virtual_key',
      oneOf(keys),
    ),
    ...conditionsForbidden(policy, request),
    ...unless(
      policy.sockets === undefined || policy.sockets === (request.sockets ?? false),
      'sockets',
      `only ${policy.sockets}`,
    ),
    ...fieldsForbidden(policy, own),
    ...configForbidden(policy, provider, own, (field) => `config.${field}`),
    ...limitsForbidden(LIMIT_NAMES, policy, request, body),
  ]);
  return {
    ...request,
    expires_in: validity(policy, request.expires_in, body),
    external_user: policy.external_user ?? request.external_user,
    ...narrowed(policy, request),
    config: fixed ? { ...own, ...fixed } : request.config,
  };
}

/**
 * Refuses a virtual key whose config would change what a policy fixes.
 * @param ofVirtualKey the fields of its config that the request does not replace
 * @throws RefusedError `policy_forbids`
 */
export function obeyPolicyWith(
  policy: KeyPolicy | undefined,
  provider: Provider,
  ofVirtualKey: Record<string, unknown>,
): void {
  if (policy) refuse(configForbidden(policy, provider, ofVirtualKey, () => 'virtual_key'));
}

/**
 * The request of a bundle with the fields that a policy sets.
 * @throws RefusedError `policy_forbids` that names every violation
 */
export function obeyMcpPolicy(
  policy: KeyPolicy | undefined,
  request: McpPresignRequest,
  body: unknown,
): McpPresignRequest {
  if (policy === undefined) return request;
  const { providers, mcp_hosts: hosts } = policy;
  refuse([
    ...unless(!providers || providers.includes('mcp'), 'servers', `${oneOf(providers)}, and not mcp`),
    ...request.servers.flatMap(({ url }, i) =>
      unless(!hosts || hosts.includes(new URL(url).host), `servers[${i}].url`, `the hosts ${list(hosts)}`),
    ),
    ...conditionsForbidden(policy, request),
    ...limitsForbidden(MCP_LIMIT_NAMES, policy, request, body),
  ]);
  return {
    ...request,
    expires_in: validity(policy, request.expires_in, body),
    external_user: policy.external_user ?? request.external_user,
    bind: narrowed(policy, request).bind,
  };
}

/**
 * Refuses the URL of an earlier request with the same `Idempotency-Key`, unless this API key issued it, because another
 * key may have had no policy.
 * @throws RefusedError `idempotency_conflict`
 */
export function obeyPolicyAgain(
  policy: KeyPolicy | undefined,
  apiKeyId: string,
  earlier: { readonly apiKeyId: string | null },
): void {
  if (policy === undefined || earlier.apiKeyId === apiKeyId) return;
  throw new RefusedError({ code: 'idempotency_conflict', param: 'Idempotency-Key', message: OTHER_KEY });
}

const OTHER_KEY =
  'Idempotency-Key: another API key issued this URL, and this API key has a policy. Use a new Idempotency-Key.';

function refuse(violations: readonly Violation[]): void {
  const [first] = violations;
  if (!first) return;
  const sentences = violations.map(
    ({ field, allowed }) => `${field}: the policy of this API key allows ${allowed}.`,
  );
  throw new RefusedError({
    code: 'policy_forbids',
    param: first.field,
    message: sentences.join(' '),
    details: { violations: sentences },
  });
}

const unless = (isAllowed: boolean, field: string, allowed: string): Violation[] =>
  isAllowed ? [] : [{ field, allowed }];

function pathsForbidden(
  { paths }: KeyPolicy,
  asked: readonly string[],
  names: readonly string[],
): Violation[] {
  if (!paths) return [];
  // A pattern of the request is compared as text: its wildcards must be within those of the policy.
  const matches = compilePaths(paths);
  return asked.flatMap((path, i) => unless(matches(path), names[i] ?? 'path', oneOf(paths)));
}

/** Everything that a policy sets in each URL, and that a request can narrow. */
type Narrowable = Omit<Conditions, 'sockets'> & { readonly models?: string[] | undefined };

/** The conditions of a request that are wider than those of a policy. */
function conditionsForbidden(policy: Narrowable, request: Narrowable): Violation[] {
  const { models, max_body_bytes: most, allowed_fields: fields, bind } = policy;
  return [
    ...strays('models', request.models, models),
    ...unless((request.max_body_bytes ?? 0) <= (most ?? Infinity), 'max_body_bytes', `at most ${most} bytes`),
    ...strays('allowed_fields', request.allowed_fields, fields),
    ...strays('bind.origins', request.bind?.origins, bind?.origins),
    ...strays('bind.ip_ranges', request.bind?.ip_ranges, bind?.ip_ranges, isWithin),
  ];
}

/** The entries of a list that a policy does not allow. */
function strays(
  field: string,
  asked: readonly string[] | undefined,
  allowed: readonly string[] | undefined,
  fits = (entry: string, among: string) => entry === among,
): Violation[] {
  if (!asked || !allowed) return [];
  const names = oneOf(allowed);
  return asked.flatMap((entry, i) =>
    unless(
      allowed.some((among) => fits(entry, among)),
      `${field}[${i}]`,
      names,
    ),
  );
}

/** The conditions of a URL: those of its request, plus those of the policy that the request omits. */
function narrowed(policy: Narrowable, request: Narrowable) {
  const bind = {
    origins: request.bind?.origins ?? policy.bind?.origins,
    ip_ranges: request.bind?.ip_ranges ?? policy.bind?.ip_ranges,
  };
  return {
    models: request.models ?? policy.models,
    max_body_bytes: request.max_body_bytes ?? policy.max_body_bytes,
    allowed_fields: request.allowed_fields ?? policy.allowed_fields,
    bind: policy.bind || request.bind ? bind : undefined,
  };
}

/** Whether all addresses of a range are in another one. Each is an address, or a range as CIDR writes it. */
function isWithin(inner: string, outer: string): boolean {
  const [from, to] = [inner, outer].map((text) => {
    const [address = '', bits] = text.split('/');
    const family = isIP(address) === 4 ? ('ipv4' as const) : ('ipv6' as const);
    return { address, family, bits: Number(bits ?? (family === 'ipv4' ? 32 : 128)) };
  });
  if (!from || !to || from.family !== to.family || from.bits < to.bits) return false;
  const range = new BlockList();
  range.addSubnet(to.address, to.bits, to.family);
  return range.check(from.address, from.family);
}

/** The fields of a request's config that would widen the bodies of its calls. */
function fieldsForbidden(
  { allowed_fields: fields, config: fixed = {} }: KeyPolicy,
  config: Record<string, unknown>,
): Violation[] {
  if (!fields) return [];
  const allowed = oneOf(fields);
  const stray = Object.keys(config).filter(
    (field) => !Object.hasOwn(fixed, field) && !fields.includes(field),
  );
  return stray.map((field) => ({ field: `config.${field}`, allowed }));
}

function configForbidden(
  { config: fixed = {}, models }: KeyPolicy,
  provider: Provider,
  config: Record<string, unknown>,
  nameOf: (field: string) => string,
): Violation[] {
  const changed = Object.keys(config).filter(
    (field) => Object.hasOwn(fixed, field) && !isDeepStrictEqual(config[field], fixed[field]),
  );
  const over = fieldOverFixed(provider, fixed, config);
  const { model } = config;
  return [
    ...changed.map((field) => ({
      field: nameOf(field),
      allowed: `only ${briefly(JSON.stringify(fixed[field]))}`,
    })),
    ...(over === undefined
      ? []
      : [{ field: nameOf(over), allowed: `nothing that changes ${Object.keys(fixed).join(', ')}` }]),
    ...unless(
      model === undefined || !models || models.includes(model as string),
      nameOf('model'),
      oneOf(models),
    ),
  ];
}

type Limits = Pick<PresignRequest, 'expires_in' | 'external_user'> & {
  readonly [N in LimitName]?: number | undefined;
};

/** @param names the limits that such a URL can have */
function limitsForbidden(
  names: readonly LimitName[],
  { highest, required = [], external_user: user }: KeyPolicy,
  request: Limits,
  body: unknown,
): Violation[] {
  const seconds = request.expires_in === -1 ? ONE_YEAR_SECONDS : request.expires_in;
  const longest = highest?.expires_in ?? seconds;
  return [
    ...names.flatMap((field) => {
      const limit = field === 'max_uses' && request.max_uses === -1 ? undefined : request[field];
      const most = highest?.[field];
      if (most !== undefined)
        return unless(limit !== undefined && limit <= most, field, `at most ${most}, and no URL without it`);
      return unless(limit !== undefined || !required.includes(field), field, 'no URL without it');
    }),
    ...unless(seconds <= longest || isOmitted(body), 'expires_in', `at most ${longest} seconds`),
    ...unless(
      user === undefined || request.external_user === undefined || request.external_user === user,
      'external_user',
      `only "${briefly(user ?? '')}"`,
    ),
  ];
}

/** The validity of a URL if the default is longer than the policy allows. */
const validity = ({ highest }: KeyPolicy, seconds: number, body: unknown): number =>
  isOmitted(body) ? Math.min(seconds, highest?.expires_in ?? seconds) : seconds;

const isOmitted = (body: unknown): boolean => !isJsonObject(body) || (body.expires_in ?? null) === null;

const list = (names: readonly string[] = []): string => briefly(names.join(', '));
const oneOf = (names: readonly string[] | undefined): string =>
  names?.length === 0 ? 'none' : `only ${list(names)}`;
