import type { KeyPolicy } from '@presign/client';
import { count, money } from '../data/format/format.ts';
import { writeSpan } from '../data/format/span.ts';

/** The number of entries of a list that a sentence names. */
const NAMED = 3;

/** A list as a part of a sentence. A long list ends with the number of omitted entries. */
function join(entries: readonly string[], word: 'and' | 'or'): string {
  const more = entries.length - NAMED;
  const shown = more > 1 ? [...entries.slice(0, NAMED), `${count(more)} others`] : entries;
  return shown.length < 2 ? shown.join('') : `${shown.slice(0, -1).join(', ')} ${word} ${shown.at(-1)}`;
}

const either = (entries: readonly string[] | undefined): string | undefined => entries && join(entries, 'or');

/** The unit of a limit, by its name in the API: `calls_per_minute` are calls a minute. */
export const limitInWords = (name: string): string =>
  name === 'cost_limit' ? 'cost' : name.replace(/^max_/, '').replace('_per_', ' a ').replaceAll('_', ' ');

/** A highest limit with its amount. */
function mostInWords(name: string, most: number): string {
  if (name === 'cost_limit') return money(most);
  const unit = limitInWords(name);
  return `${count(most)} ${most === 1 ? unit.replace(/s\b/, '') : unit}`;
}

const clause = (before: string, text: string | undefined, after = ''): string[] =>
  text === undefined || text === '' ? [] : [`${before}${text}${after}`];

/** The targets of the URLs. */
function targets(
  { providers, mcp_hosts: hosts, paths, models, virtual_keys: keys }: KeyPolicy,
  nameOf: NameOf,
) {
  return [
    ...clause('for ', either(providers?.map((id) => (id === 'mcp' ? 'MCP servers' : id)))),
    ...clause('to MCP servers on ', either(hosts)),
    ...clause('with the path ', either(paths)),
    ...clause(
      `with the model${models && models.length > 1 ? 's' : ''} `,
      models && join(models, 'and'),
      ' alone',
    ),
    ...clause('with the virtual key ', either(keys?.map(nameOf))),
  ];
}

function limits({ highest = {}, required }: KeyPolicy): string[] {
  const { expires_in: seconds, ...most } = highest;
  const words = Object.entries(most).map(([name, value]) => mostInWords(name, value));
  return [
    ...clause('of at most ', words.length > 0 ? join(words, 'and') : undefined, ' each'),
    ...clause('that last at most ', seconds === undefined ? undefined : writeSpan(seconds)),
    ...clause('that limit ', required && join(required.map(limitInWords), 'and')),
  ];
}

function conditions(policy: KeyPolicy): string[] {
  const {
    bind,
    sockets,
    max_body_bytes: bytes,
    allowed_fields: fields,
    config,
    external_user: user,
  } = policy;
  return [
    ...clause('for calls of pages of ', either(bind?.origins)),
    ...clause('for calls from ', either(bind?.ip_ranges)),
    ...clause(
      '',
      sockets === undefined ? undefined : sockets ? 'that open as sockets' : 'that never open as sockets',
    ),
    ...clause('with bodies of at most ', bytes === undefined ? undefined : `${count(bytes)} bytes`),
    ...clause('with the field', fields && fieldsInWords(fields)),
    ...clause(
      'with ',
      config &&
        join(
          Object.entries(config).map(([name, value]) => `${name} ${JSON.stringify(value)}`),
          'and',
        ),
    ),
    ...clause('for the user ', user),
  ];
}

const fieldsInWords = (fields: readonly string[]): string =>
  fields.length === 0
    ? 's of their config alone'
    : `${fields.length > 1 ? 's' : ''} ${join(fields, 'and')} alone`;

/** The name of a virtual key by its id. */
export type NameOf = (virtualKey: string) => string;

/** Says in one sentence what a key with this policy may issue. */
export function policyInWords(policy: KeyPolicy | null, nameOf: NameOf): string {
  if (policy === null) return 'It may issue any URL.';
  const all = [...targets(policy, nameOf), ...limits(policy), ...conditions(policy)];
  const ending = policy.refuse_warnings ? 'none that would get a warning' : '';
  if (all.length === 0) return ending === '' ? 'It may issue any URL.' : `It issues any URL, but ${ending}.`;
  return `It issues only URLs ${all.join(', ')}${ending === '' ? '' : `, and ${ending}`}.`;
}
