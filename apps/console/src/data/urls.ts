import type { Grant } from '@presign/client';
import { count, money, short } from './format/format.ts';

/** An issued URL with its session. */
export type Url = Grant;

/** The names that people gave a URL, and the beginning of its id. */
export const nameOfUrl = ({ session_name: name, external_session: session, id }: Url): string =>
  [name ?? session, short(id)].filter(Boolean).join(' · ');

/** Whether a URL can still be used, and so be changed. */
export const isLive = ({ status }: Pick<Url, 'status'>): boolean =>
  status === 'active' || status === 'exhausted';

type Filters = Readonly<Record<string, string | undefined>>;

const ENDS_IN: Readonly<Record<string, number>> = { '1h': 3_600, '1d': 86_400, '7d': 604_800 };

/** Whether a URL fits the filters of the page. The API applies some of them. */
export function fitsUrl(url: Url, filters: Filters, now: number): boolean {
  const { name, state, ends, model, ...others } = filters;
  // An unknown filter matches no URL. Otherwise it would look applied while all URLs are listed.
  const same = Object.entries(others).every(
    ([field, value]) => value === undefined || value === fieldIn(url, field),
  );
  const end = ends === undefined ? undefined : ENDS_IN[ends];
  return (
    same &&
    (state === undefined || url.status === state) &&
    (model === undefined || url.models === null || url.models.includes(model)) &&
    (end === undefined || (isLive(url) && url.expires_at <= now + end)) &&
    (name === undefined || isNamed(url, name))
  );
}

/** A field of a URL by its name in the API, such as `session_id` or `metadata.team`. */
function fieldIn(url: Url, field: string): unknown {
  const key = /^metadata\.(.+)$/.exec(field)?.[1];
  return key === undefined ? (url as Readonly<Record<string, unknown>>)[field] : url.metadata?.[key];
}

function isNamed({ id, session_name: name, external_session: session }: Url, text: string): boolean {
  const part = text.toLowerCase();
  return id.startsWith(part) || [name, session].some((each) => each?.toLowerCase().includes(part));
}

/** A change of URLs. Money is in microdollars. */
export type UrlChange =
  | { readonly kind: 'raise'; readonly dollars: number; readonly uses: number }
  | { readonly kind: 'extend'; readonly seconds: number }
  | { readonly kind: 'revoke' };

/** The values that a URL gets. They are absolute, so that sending them twice adds nothing twice. Null: it is revoked. */
export type NewLimits = {
  readonly cost_limit?: number;
  readonly max_uses?: number;
  readonly expires_at?: number;
};
export type Planned = { readonly url: Url; readonly fields: NewLimits | null };

export type UrlPlan = {
  readonly change: UrlChange;
  readonly planned: readonly Planned[];
  /** URLs that are not changed, by the reason. */
  readonly left: ReadonlyMap<Why, number>;
};

/** The reasons to leave URLs out, of one and of several. */
const WHY = {
  ended: ['it has ended, and never comes back', 'they have ended, and never come back'],
  bundled: ['it changes with the URL of its bundle', 'they change with the URLs of their bundles'],
  unlimited: ['it has no such limit', 'they have no such limit'],
} as const;
type Why = keyof typeof WHY;

/** The new values of each URL, and the URLs that a change skips. */
export function planChange(change: UrlChange, urls: readonly Url[]): UrlPlan {
  const planned: Planned[] = [];
  const left = new Map<Why, number>();
  for (const url of urls) {
    const fields = fieldsOf(change, url);
    if (typeof fields === 'string') left.set(fields, (left.get(fields) ?? 0) + 1);
    else planned.push({ url, fields });
  }
  return { change, planned, left };
}

function fieldsOf(change: UrlChange, url: Url): NewLimits | null | Why {
  if (!isLive(url)) return 'ended';
  if (change.kind === 'revoke') return null;
  if (url.bundle_id !== null) return 'bundled';
  if (change.kind === 'extend') return { expires_at: Math.floor(url.expires_at + change.seconds) };
  const { cost_limit: cost, max_uses: uses } = url;
  const fields = {
    ...(change.dollars > 0 && cost !== null && { cost_limit: cost + change.dollars }),
    ...(change.uses > 0 && uses !== null && { max_uses: uses + change.uses }),
  };
  return Object.keys(fields).length === 0 ? 'unlimited' : fields;
}

const urlsIn = (amount: number): string => `${count(amount)} ${amount === 1 ? 'URL' : 'URLs'}`;

/** A plan in sentences: what changes, for how many URLs, and what does not change. */
export function wordsOf({ change, planned, left }: UrlPlan): string[] {
  const users = new Set(planned.flatMap(({ url }) => url.external_user ?? []));
  const of = users.size === 0 ? '' : ` of ${count(users.size)} ${users.size === 1 ? 'user' : 'users'}`;
  const all = `${urlsIn(planned.length)}${of}`;
  const stay = [...left].map(([why, amount]) =>
    amount === 1
      ? `1 URL stays as it is: ${WHY[why][0]}.`
      : `${urlsIn(amount)} stay as they are: ${WHY[why][1]}.`,
  );
  return planned.length === 0 ? ['Nothing changes.', ...stay] : [...doneTo(change, planned, all), ...stay];
}

function doneTo(change: UrlChange, planned: readonly Planned[], all: string): string[] {
  const many = planned.length > 1;
  if (change.kind === 'revoke')
    return [
      `${all} ${many ? 'are' : 'is'} revoked. Every gateway refuses the next call, and running streams end. This cannot be undone.`,
    ];
  if (change.kind === 'extend')
    return [
      `${all} ${many ? 'end' : 'ends'} ${hoursOf(change.seconds)} later than now.`,
      'A URL that then ends later than its token gets a new URL, which only the answer shows. The old one ends as before.',
    ];
  const withMoney = planned.filter(({ fields }) => fields?.cost_limit !== undefined).length;
  const withUses = planned.filter(({ fields }) => fields?.max_uses !== undefined).length;
  return [
    `The limits of ${all} rise from the next call on.`,
    ...(withMoney > 0
      ? [
          `${urlsIn(withMoney)} may spend ${money(change.dollars)} more each, in all ${money(change.dollars * withMoney)}.`,
        ]
      : []),
    ...(withUses > 0 ? [`${urlsIn(withUses)} may make ${count(change.uses)} more calls each.`] : []),
  ];
}

const hoursOf = (seconds: number): string => {
  const hours = seconds / 3_600;
  return hours % 24 === 0
    ? `${count(hours / 24)} ${hours === 24 ? 'day' : 'days'}`
    : `${count(hours)} ${hours === 1 ? 'hour' : 'hours'}`;
};

/** Whether a URL already has the values, because an answer may have been lost. */
export const hasLimits = (url: Url, fields: NewLimits): boolean =>
  (Object.keys(fields) as (keyof NewLimits)[]).every((field) => url[field] === fields[field]);
