import type { IncomingMessage, ServerResponse } from 'node:http';
import { fixedHold, type Hold } from '@presign/limits';
import {
  type Answered,
  answeredBy,
  applyConfig,
  costsNothing,
  dialectOf,
  type JsonObject,
  type PricesAt,
  type Pricing,
  type Provider,
  pricingOf,
  type Spend,
  spendOf,
  strayModel,
} from '@presign/providers';
import { briefly, type Refusal } from '@presign/schema';
import type { CallReport } from '../call-report.ts';
import type { CallRules } from '../grant/call-rules.ts';
import type { Policy } from '../grant/policy.ts';
import type { LlmGrant } from '../grant/verify.ts';
import type { Body } from '../http/body.ts';
import { type Came, compactSize, splice, withoutLists } from '../json/splice.ts';
import type { Reservation } from '../share/body-memory.ts';
import type { Content } from './body.ts';
import { type SavedOf, type Unplannable, worstCase } from './hold.ts';
import type { Target } from './match.ts';

/** The highest cost of a call and the body to send, decided before it is admitted. */
export type Plan = {
  /** The cost that admission must hold. Undefined when no budget limits spending. */
  readonly hold: Hold | undefined;
  /** The most tokens that the call can use. Undefined when nothing limits tokens by the minute. */
  readonly worstTokens: number | undefined;
  /** The gateway writes the output bound into the body. */
  readonly writesBound: boolean;
  /** The most input tokens that the hold covers; 0 when nothing is held. */
  readonly inputTokens: number;
  /** A stream states all of its input at its start, which is at least this, so its hold can be narrowed. Undefined: it cannot. */
  readonly leastInput: number | undefined;
  /** How to read its answer. Undefined when the endpoint is not known, or costs nothing. */
  readonly spend: Spend | undefined;
  readonly model: string | undefined;
  /** Undefined: the ledger records the cost as unknown, unless the call is `free`. */
  readonly pricing: Pricing | undefined;
  /** The model that answered, by its name in the answer, and its price by the lists of the call's admission. */
  readonly answeredBy: (name: string | undefined) => Answered;
  /** The version of the knowledge about the provider. */
  readonly knowledge: string | undefined;
  /** The provider charges nothing for this call. */
  readonly free: boolean;
  readonly streams: boolean;
  /** Whether the answer repeats the prompt. */
  readonly echoes: boolean;
  /** The gateway asked for the stream's usage event and the holder did not. */
  readonly dropsUsageEvent: boolean;
  /** The gateway sends the body as plain JSON, whatever content type and coding the holder's headers state. */
  readonly rewritten: boolean;
  /** The output bound that the holder asked for. It is sent when admission allows more. */
  readonly askedTokens: number;
  /** Creates the body to send with an output bound. Works once. */
  readonly bodyFor: (boundTokens: number) => Body;
};

/** A planned call, with everything that the later steps need. */
export type Call = {
  readonly requestId: string;
  readonly report: CallReport;
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
  readonly grant: LlmGrant;
  readonly target: Target;
  readonly policy: Policy;
  readonly plan: Plan;
  /** The memory that its body takes. */
  readonly bodyMemory: Reservation;
  /** The body is sent decoded. */
  readonly isDecoded: boolean;
  readonly holdId: string;
  /** For the ledger, as `callRecord` writes it. */
  readonly record: string;
};

/** The limits of a grant's budgets. */
export type Limited = Pick<Policy, 'costLimited' | 'tokenLimited'>;

/** The call to plan: its grant, target, rules, limits and content, and its prices and time. */
export type Asked = {
  readonly grant: Pick<LlmGrant, 'provider' | 'method'>;
  readonly target: Target;
  readonly rules: CallRules;
  readonly limited: Limited;
  readonly content: Content;
  readonly at: PricesAt;
  /** Counts plain text in place of its bytes. */
  readonly savedOf?: SavedOf;
};

/** Decides what a call can cost and what its body will be. It counts nothing. */
export function planCall(asked: Asked): { plan: Plan } | Unplannable {
  const { target, limited } = asked;
  const { provider, method } = asked.grant;
  const strayField = fieldRefusal(asked);
  if (strayField) return { refusal: strayField };
  const body = configured(asked);
  const strayModel = modelRefusal(asked, body);
  if (strayModel) return strayModel;
  if (costsNothing(provider, method, target.path)) return { plan: freePlan(asked, body) };
  if (limited.costLimited || limited.tokenLimited) return limitedPlan(asked, body);
  return { plan: unlimitedPlan(asked, body) };
}

/** The call has no limit, so its usage is metered only as far as it can be read. */
function unlimitedPlan(asked: Asked, body: JsonObject | undefined): Plan {
  const { target, content, rules } = asked;
  const { provider } = asked.grant;
  const spend = spendOf(provider, target.path);
  const configures = body !== undefined && rules.config !== undefined;
  const isRead = isChecked(asked);
  if (!body || !spend) {
    const bodyFor = once(() => (configures ? writerOf(content).bytesOf(body) : content.raw));
    return { ...UNKNOWN, knowledge: provider.knowledge, rewritten: isRead, bodyFor };
  }
  const model = spend.model(body, target.path);
  const pricing = model === undefined ? undefined : pricingOf(provider, model, asked.at);
  const { usageBody, streams, echoes, dropsUsageEvent } = askingForUsage(spend, body, target);
  checkLeftOut(content, usageBody);
  const isChanged = configures || dropsUsageEvent;
  const bodyFor = once(() => (isChanged ? writerOf(content).bytesOf(usageBody) : content.raw));
  return {
    ...UNKNOWN,
    knowledge: provider.knowledge,
    streams,
    echoes,
    dropsUsageEvent,
    spend,
    model,
    pricing,
    answeredBy: answeredWith(provider, model, asked.at),
    rewritten: isRead || isChanged,
    bodyFor,
  };
}

/** Whether the provider must read the body as the gateway has read it, whatever the holder's headers say. */
const isChecked = ({ content, rules: { config, models, fields } }: Asked): boolean =>
  content.json !== undefined && (config ?? models ?? fields) !== undefined;

/** Refuses a body with a field for which its URL was not issued. Fields are compared exactly. */
function fieldRefusal({ content, rules: { fields }, grant, target }: Asked): Refusal | undefined {
  if (!fields) return undefined;
  const { addedFields = [] } = dialectOf(grant.provider, target.path) ?? {};
  const stray = Object.keys(content.json ?? {}).find(
    (field) => !fields.has(field) && !addedFields.includes(field),
  );
  if (stray === undefined) return undefined;
  const param = briefly(stray);
  const message = `This URL allows the fields ${briefly(fields.all.join(', ')) || '(none)'}, not ${param}.`;
  return { code: 'field_not_allowed', param, message, details: { allowed: fields.all } };
}

/** Refuses a call that may use a model for which its URL was not issued. The model is reported if it has a price, as that of each call. */
function modelRefusal(
  { target, rules: { models }, grant, at }: Asked,
  body: JsonObject | undefined,
): Unplannable | undefined {
  const call = { method: grant.method, ...target, body };
  const stray = models && strayModel(grant.provider, call, models);
  if (!stray) return undefined;
  const message = `${stray.param}: ${stray.reason}. This URL allows ${models.all.length === 1 ? 'the model' : 'the models'} ${briefly(models.all.join(', '))}.`;
  const refusal = {
    code: 'model_not_allowed',
    param: stray.param,
    message,
    details: { allowed: models.all },
  } as const;
  const { model } = stray;
  return { refusal, model: model !== undefined && pricingOf(grant.provider, model, at) ? model : undefined };
}

/** Whether a call takes its maximum at admission, and returns the rest when it is settled. */
export const givesBack = ({ hold, worstTokens }: Pick<Plan, 'hold' | 'worstTokens'>): boolean =>
  hold !== undefined || worstTokens !== undefined;

const UNKNOWN = {
  hold: undefined,
  worstTokens: undefined,
  writesBound: false,
  inputTokens: 0,
  leastInput: undefined,
  spend: undefined,
  model: undefined,
  pricing: undefined,
  answeredBy: () => ({ pricing: undefined }),
  free: false,
  streams: false,
  echoes: false,
  dropsUsageEvent: false,
  rewritten: false,
  askedTokens: 0,
} as const;

function freePlan(asked: Asked, body: JsonObject | undefined): Plan {
  const { rules, limited, content } = asked;
  const hold = limited.costLimited ? fixedHold(0) : undefined;
  const worstTokens = limited.tokenLimited ? 0 : undefined;
  const bodyFor = once(() => (body && rules.config ? writerOf(content).bytesOf(body) : content.raw));
  return {
    ...UNKNOWN,
    knowledge: asked.grant.provider.knowledge,
    hold,
    worstTokens,
    free: true,
    rewritten: isChecked(asked),
    bodyFor,
  };
}

/** Under a limit of money or tokens a call passes only if its maximum at the standard price is known. */
function limitedPlan(asked: Asked, read: JsonObject | undefined): { plan: Plan } | Unplannable {
  const { target, at, savedOf, limited } = asked;
  const { provider } = asked.grant;
  const spend = spendOf(provider, target.path);
  const written = writerOf(asked.content);
  const { path, query } = target;
  const call = { spend, body: read ?? {}, path, query, sizeOf: written.sizeOf };
  const { costLimited, tokenLimited } = limited;
  const held = worstCase(provider, call, { costLimited, tokenLimited, at, savedOf });
  if ('refusal' in held) return held;
  const { usageBody, streams, echoes, dropsUsageEvent } = askingForUsage(held.spend, held.body, target);
  const bound = held.hasOutput ? held.spend.withOutputBound : undefined;
  checkLeftOut(asked.content, usageBody);
  // Each member is written by name, because spreading the parts takes 5 % of a small call's time.
  const plan: Plan = {
    hold: held.hold,
    worstTokens: held.worstTokens,
    writesBound: bound !== undefined,
    inputTokens: held.inputTokens,
    leastInput: held.leastInput,
    spend: held.spend,
    model: held.model,
    pricing: held.pricing,
    answeredBy: answeredWith(provider, held.model, at),
    knowledge: provider.knowledge,
    free: false,
    streams,
    echoes,
    dropsUsageEvent,
    rewritten: true,
    askedTokens: held.askedTokens,
    bodyFor: once(boundedWriter(asked.content, usageBody, bound)),
  };
  return { plan };
}

export const answeredWith =
  (provider: Provider, model: string | undefined, at: PricesAt): Plan['answeredBy'] =>
  (name) =>
    answeredBy(provider, model, name, at);

/** The body with the grant's config applied. */
function configured({ content, rules, target }: Asked): JsonObject | undefined {
  if (!content.json || !rules.config) return content.json;
  const { body } = applyConfig(rules.config, { path: target.path, body: content.json });
  checkLeftOut(content, body);
  return body;
}

/** Only an unchanged member is sent with texts that were left out: its bytes are those that arrived. */
function checkLeftOut({ json, leftOut = [] }: Content, sent: JsonObject): void {
  for (const { path } of leftOut)
    if (sent[path[0] as string] !== json?.[path[0] as string])
      throw new Error('a member with texts that were left out has changed');
}

/** Adds the request for a stream's usage, for providers that report it only on request. */
function askingForUsage(spend: Spend, body: JsonObject, { path, query }: Target) {
  const streams = spend.streams(body, path, query);
  const asked = streams && !spend.refusesAsking?.(body, query) ? spend.askUsage?.(body) : undefined;
  const echoes = spend.echoes?.(body) === true;
  return { streams, echoes, dropsUsageEvent: asked !== undefined, usageBody: asked ?? body };
}

/** Drops the parsed body once the body to send is created, because the answer may take an hour. */
function once(make: (tokens: number) => Body): (tokens: number) => Body {
  let remembered: typeof make | undefined = make;
  return (tokens) => {
    const body = remembered?.(tokens) ?? null;
    remembered = undefined;
    return body;
  };
}

/** How to write a body whose members are mostly unchanged. */
function writerOf(content: Content): {
  readonly sizeOf: (body: JsonObject) => number;
  readonly bytesOf: (body: JsonObject) => Body;
} {
  const came = cameOf(content);
  if (!came) return { sizeOf: (body) => toBytes(body).length, bytesOf: toBytes };
  return { sizeOf: (body) => compactSize(came, body), bytesOf: (body) => splice(came, body) };
}

/** Writes a body with an output bound. No bound is inside a list, so the contents of the lists need not be kept until then. */
function boundedWriter(
  content: Content,
  body: JsonObject,
  bound: Spend['withOutputBound'],
): (tokens: number) => Body {
  const came = cameOf(content);
  if (!came) return (tokens) => toBytes(bound?.(body, tokens) ?? body);
  return spliceWith(withoutLists(came, body), bound);
}

/** A separate function, because V8 keeps the whole body alive for closures that share its scope. */
const spliceWith =
  ({ came, sent }: ReturnType<typeof withoutLists>, bound: Spend['withOutputBound']) =>
  (tokens: number): Body =>
    splice(came, bound?.(sent, tokens) ?? sent);

const cameOf = ({ raw, json, scan }: Content): Came | undefined =>
  raw instanceof Buffer && json && scan ? { raw, json, scan } : undefined;

const toBytes = (body: JsonObject): Buffer => Buffer.from(JSON.stringify(body));
