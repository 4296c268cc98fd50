import { readJson } from './schema.ts';

/** The message of a refusal without its code. APIs write errors in several forms, and all messages begin with the code. */
export function messageIn(text: string, code: string): string | undefined {
  const found = textsIn(readJson(text)).find((each) => each.startsWith(`${code}: `));
  return found?.slice(code.length + 2);
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

const RAISE = 'Raise the limit on the page of the URL or of the budget that the message names.';
const WAIT = 'Wait a moment, and call again.';
const ANOTHER = 'Issue another URL.';

/** The next step after a refusal, by its code. */
const ADVICE: Readonly<Record<string, string>> = {
  uses_exhausted: 'Raise the uses on the page of the URL, or issue another one.',
  cost_limit_reached: RAISE,
  token_limit_reached: RAISE,
  cost_limit_too_low: 'Ask for a shorter answer, such as with max_tokens, or raise the limit.',
  token_limit_too_low: 'Ask for a shorter answer, such as with max_tokens, or raise the limit.',
  token_rate_too_low: 'Ask for a shorter answer, such as with max_tokens, or raise the limit.',
  cost_held: 'Call again when other calls have ended.',
  tokens_held: 'Call again when other calls have ended.',
  concurrency_limited: 'Call again when other calls have ended.',
  rate_limited: WAIT,
  daily_rate_limited: 'Wait, or raise the rate limit of the URL.',
  token_rate_limited: WAIT,
  model_not_allowed: 'Use a model that the URL allows, or issue another URL whose models have this one.',
  field_not_allowed: 'Leave the field out, or issue another URL whose allowed_fields have it.',
  path_not_allowed: 'Use a path that the URL allows, or issue another URL with this one.',
  method_not_allowed: 'Issue another URL with this method.',
  tool_not_allowed: 'Use a tool that the URL allows.',
  argument_not_allowed: 'Use arguments that the URL allows.',
  origin_not_allowed: 'Call from a page that the URL allows, or add the origin of this page to bind.origins.',
  address_not_allowed: 'Call from an address that the URL allows, or add yours to bind.ip_ranges.',
  body_too_large: 'Send a shorter body, or issue another URL with a larger max_body_bytes.',
  sockets_not_allowed: 'Turn sockets on in the form, and issue another URL.',
  price_unknown: 'Use a model that has a price, or issue the URL without a limit in dollars.',
  cost_unbounded: 'Leave the named part out, or issue the URL without a limit in dollars.',
  grant_revoked: ANOTHER,
  token_expired: ANOTHER,
  virtual_key_revoked: 'Issue another URL with a virtual key that is in force.',
  account_suspended: 'An operator can resume the account.',
  upstream_auth_failed: 'The provider refused its key. Issue another URL with a key that it accepts.',
  upstream_unreachable: 'The provider could not be reached. Call again.',
  upstream_timeout: 'The provider did not answer in time. Call again.',
  overloaded: WAIT,
  limits_unavailable: WAIT,
};

export const adviceOn = (code: string): string => ADVICE[code] ?? 'The reference of errors has this code.';
