import { isJsonObject, type JsonObject } from '@presign/schema';
import { afterSpace, membersOf, type Part, partsOf } from '../../json/parts.ts';
import type { IdKind } from './seal.ts';

/** Where a message has an id of this kind. `*` stands for each element of a list. */
type Place<Kind = IdKind> = {
  readonly kind: Kind;
  readonly path: readonly string[];
  /** The id may also be the client's own. */
  readonly mayBeOwn?: true;
};

/** An id in a JSON text, and its position. */
export type FoundId<Kind = IdKind> = Omit<Place<Kind>, 'path'> & {
  readonly param: string;
  /** The string or number as written. */
  readonly json: string;
  readonly start: number;
  readonly end: number;
};

function place<Kind extends string>(kind: Kind, path: string): Place<Kind> {
  return { kind, path: path.split(' ') };
}

/** MCP 2025-11-25, "Related Task Metadata". */
const RELATED = '_meta io.modelcontextprotocol/related-task taskId';

/** `CreateTaskResult`, `GetTaskResult`, `ListTasksResult` (MCP 2025-11-25), the flat forms of SEP-2663, and `InputRequiredResult`. */
const RESULT: readonly Place[] = [
  place('task', 'result taskId'),
  place('task', 'result task taskId'),
  place('task', 'result tasks * taskId'),
  place('task', `result ${RELATED}`),
  place('state', 'result requestState'),
];

const OF_PARAMS = place('task', `params ${RELATED}`);

/** A request of the server. In the server's own `tasks/*` requests the id is that of a client's task. */
const REQUEST: readonly Place[] = [
  place('request', 'id'),
  place('progress', 'params _meta progressToken'),
  OF_PARAMS,
];

const NOTIFICATIONS: ReadonlyMap<string, readonly Place[]> = new Map([
  ['notifications/tasks', [place('task', 'params taskId'), OF_PARAMS]],
  ['notifications/tasks/status', [place('task', 'params taskId'), OF_PARAMS]],
  ['notifications/cancelled', [place('request', 'params requestId'), OF_PARAMS]],
  ['notifications/subscriptions/acknowledged', [place('task', 'params notifications taskIds *'), OF_PARAMS]],
]);

/** Where a server's message contains an id for the client. */
export function handedOut(message: JsonObject): readonly Place[] {
  const { method, id } = message;
  if (typeof method !== 'string') return RESULT;
  if (id !== undefined && id !== null) return REQUEST;
  return NOTIFICATIONS.get(method) ?? [OF_PARAMS];
}

/** The client's answer to a request of the server. It may be about a task of the client's own. */
const ANSWER: readonly Place[] = [
  place('request', 'id'),
  { ...place('task', `result ${RELATED}`), mayBeOwn: true },
];
const CALL: readonly Place[] = [place('state', 'params requestState'), OF_PARAMS];
/** A holder gets no cursor for a list of tasks. The cursor of any other list refers to items that every holder may list. */
const OF_TASK: readonly Place[] = [
  place('task', 'params taskId'),
  place('cursor', 'params cursor'),
  OF_PARAMS,
];
const LISTEN: readonly Place[] = [place('task', 'params notifications taskIds *'), OF_PARAMS];
const PROGRESS: readonly Place[] = [place('progress', 'params progressToken'), OF_PARAMS];

/** The client's own id of a request whose answer may be filtered: a list of tools or tasks. */
const LISTS: readonly Place<'list'>[] = [place('list', 'id')];

/** Where a client's message sends an id back, or requests a list with an id. A server may run a request without an id, too. */
export function handedBack(message: JsonObject): readonly Place<HandedKind>[] {
  const places = ofServer(message);
  return listsBy(message.method) ? [...places, ...LISTS] : places;
}

export type HandedKind = IdKind | 'list';

/** Whether a method lists tools or tasks. */
export const listsBy = (method: unknown): boolean => method === 'tools/list' || method === 'tasks/list';

function ofServer({ method }: JsonObject): readonly Place[] {
  if (typeof method !== 'string') return ANSWER;
  if (method.startsWith('tasks/')) return OF_TASK;
  if (method === 'subscriptions/listen') return LISTEN;
  return method === 'notifications/progress' ? PROGRESS : CALL;
}

/** The fields of a client's message that hold ids. No other spelling of them may occur in it. */
export const ID_FIELDS: readonly (readonly string[])[] = [
  ...ANSWER,
  ...CALL,
  ...OF_TASK,
  ...LISTEN,
  ...PROGRESS,
].map(({ path }) => path.filter((name) => name !== '*'));

/**
 * Finds the ids in a JSON-RPC message or batch.
 * @param value the parsed text
 */
export function findIds<Kind>(
  text: string,
  value: unknown,
  placesOf: (message: JsonObject) => readonly Place<Kind>[],
): readonly FoundId<Kind>[] {
  let starts: readonly number[] | undefined;
  return (Array.isArray(value) ? value : [value]).flatMap((message: unknown, i) => {
    if (!isJsonObject(message)) return [];
    const taken = placesOf(message).filter(({ path }) => hasScalar(message, path));
    if (taken.length === 0) return [];
    starts ??= startsOf(text, Array.isArray(value));
    return taken.flatMap((each) => foundAt(text, starts?.[i] ?? 0, each));
  });
}

/** Where each message begins. */
export const startsOf = (text: string, isBatch: boolean): readonly number[] => {
  const first = afterSpace(text, 0);
  return isBatch ? partsOf(text, first).map(({ start }) => start) : [first];
};

/** The text of the value at a path of a message. Parsers use the last of a repeated name. */
export function writtenIn(text: string, isBatch: boolean) {
  let starts: readonly number[] | undefined;
  return (message: number, path: readonly string[]): string => {
    starts ??= startsOf(text, isBatch);
    const part = partsAt(text, starts[message] ?? 0, path).at(-1);
    return part ? text.slice(part.start, part.end) : '';
  };
}

const isScalar = (value: unknown) => typeof value === 'string' || typeof value === 'number';

function hasScalar(value: unknown, [name, ...rest]: readonly string[]): boolean {
  if (name === undefined) return isScalar(value);
  if (name === '*') return Array.isArray(value) && value.some((each) => hasScalar(each, rest));
  return isJsonObject(value) && hasScalar(value[name], rest);
}

function foundAt<Kind>(text: string, message: number, { path, ...place }: Place<Kind>): FoundId<Kind>[] {
  const param = path.filter((name) => name !== '*').join('.');
  return partsAt(text, message, path).flatMap(({ start, end }) =>
    SCALAR.test(text.charAt(start)) ? [{ ...place, param, json: text.slice(start, end), start, end }] : [],
  );
}

const SCALAR = /["\d-]/;

function partsAt(text: string, start: number, [name = '', ...rest]: readonly string[]): readonly Part[] {
  const isList = text[start] === '[';
  const parts = name !== '*' ? membersOf(text, start, name) : isList ? partsOf(text, start) : [];
  return rest.length === 0 ? parts : parts.flatMap((part) => partsAt(text, part.start, rest));
}

/** A replacement between two positions of a text. */
export type Edit = { readonly start: number; readonly end: number; readonly text: string };

/** The text with these changes, which do not overlap. Everything else is unchanged. */
export function withEdits(text: string, edits: readonly Edit[]): string {
  let written = '';
  let done = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    written += text.slice(done, edit.start) + edit.text;
    done = edit.end;
  }
  return written + text.slice(done);
}
