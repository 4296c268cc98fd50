import { dialectOf, isModelName, sessionModel, socketOf, whyNoTurn } from '@presign/providers';
import { briefly, type Refusal } from '@presign/schema';
import { hasRules, NO_RULES } from '../grant/call-rules.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import { cleanQuery } from '../http/headers.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import type { Target } from '../llm/match.ts';
import type { SocketDialect } from './dialects/dialect.ts';
import { RealtimeDialect } from './dialects/realtime.ts';
import { responsesDialect } from './dialects/responses.ts';

/** The language of a socket, and its handshake. */
export type Protocol = {
  readonly dialect: SocketDialect;
  /** The endpoint with which its turns are planned. */
  readonly target: Target;
  /** The query of the forwarded handshake. */
  readonly query: string;
};

/** The protocol of a socket, by its path. Refuses a session that its URL does not allow. */
export function protocolOf(
  deps: Pick<LlmDeps, 'memory' | 'prices' | 'now'>,
  grant: LlmGrant,
  target: Target,
  policy: Policy,
): Protocol | { readonly refusal: Refusal } {
  const { provider } = grant;
  const { path } = target;
  if (socketOf(provider, path) === 'responses') {
    const dead = policy.config && whyNoTurn(policy.config);
    if (dead) return { refusal: invalid(`config.${dead.field}`, dead.reason) };
    return { dialect: responsesDialect, target, query: cleanQuery(target.query) };
  }
  const rules = hasRules(policy)
    ? deps.memory.rules.of(grant.id, dialectOf(provider, path), () => policy)
    : NO_RULES;
  const asked = modelIn(cleanQuery(target.query));
  if ('refusal' in asked) return asked;
  const fixed = sessionModel(rules.config, path);
  const model = fixed ?? asked.model;
  if (!isModelName(model))
    return { refusal: invalid('model', 'the query must name it, as ?model=gpt-realtime') };
  if (rules.models?.has(model) === false) {
    const allowed = rules.models.all;
    const message = `model: ${briefly(model)} is not allowed. This URL allows ${allowed.length === 1 ? 'the model' : 'the models'} ${briefly(allowed.join(', '))}.`;
    return { refusal: { code: 'model_not_allowed', param: 'model', message, details: { allowed } } };
  }
  const at = { prices: deps.prices.current(), now: deps.now() };
  const maxBodyBytes = policy.conditions?.max_body_bytes;
  const dialect = RealtimeDialect.open({
    provider,
    path,
    model,
    isModelFixed: fixed !== undefined,
    rules,
    at,
    maxBodyBytes,
  });
  if ('refusal' in dialect) return dialect;
  // A turn names its model in its body.
  return { dialect, target: { path, query: '' }, query: `?model=${encodeURIComponent(model)}` };
}

/** Other parameters open sessions of other kinds, such as transcriptions, or join those of others. */
function modelIn(query: string): { readonly model: string | undefined } | { readonly refusal: Refusal } {
  const params = [...new URLSearchParams(query)];
  const stray = params.find(([name]) => name !== 'model')?.[0];
  if (stray !== undefined) return { refusal: invalid(briefly(stray), 'only `model` may be in the query') };
  return params.length > 1 ? { refusal: invalid('model', 'expected it once') } : { model: params[0]?.[1] };
}

const invalid = (param: string, problem: string): Refusal => ({
  code: 'invalid_request',
  param,
  message: `${param}: ${problem}.`,
});
