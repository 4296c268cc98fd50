import { createHash } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import {
  type ArgumentCondition,
  briefly,
  isJsonObject,
  isModest,
  type JsonObject,
  type McpArguments,
  type Modesty,
  parseJson,
  type Refusal,
  readJson,
  type Scan,
  scanJson,
} from '@presign/schema';
import type { ArgumentRules, ToolArguments } from '../../grant/tool-rules.ts';
import { KnownNames, NameTree, namesJudge } from '../../json/names.ts';
import type { QuotaOwner } from '../../share/read-quota.ts';
import { messagesIn } from '../ids/answered-id.ts';
import { type HandedId, handedIds, IDS_MOST } from '../ids/handed-ids.ts';
import { isMarked } from '../ids/list-ids.ts';
import { ID_FIELDS, listsBy, writtenIn } from '../ids/places.ts';
import { type RpcId, rpcId } from '../ids/rpc-id.ts';

/** The parts of a JSON-RPC message that the gateway reads. */
export type Message = {
  /** Undefined when the message wants no answer. */
  readonly id: RpcId | undefined;
  /** Undefined when the message is a response. */
  readonly method: string | undefined;
  /** `params.name` of a tool or prompt, `params.uri` of a resource, `params.taskId` of a task. */
  readonly name: string | undefined;
  /** That parameter is present, and not a string. */
  readonly hasOddName?: true;
  /** For a call of a tool whose arguments have conditions. */
  readonly arguments?: JudgedArguments;
  /** The request that a notification cancels. */
  readonly cancels?: RpcId;
};

/** Whether arguments meet the conditions of their tool, or why not: a value, or a name that is not the one it looks like. */
export type JudgedArguments =
  | 'allowed'
  | { readonly unmet: string }
  | { readonly param: string; readonly spelt: string; readonly meant: string };

/** The messages of one POST. */
export type Messages = {
  readonly all: readonly Message[];
  readonly isBatch: boolean;
  /** A digest of what the one request asks for, if that was asked for. */
  readonly asked?: string;
  /** Ids of the server that its client hands back. */
  readonly ids?: readonly HandedId[];
};

/** Whether a message is a request that wants an answer. */
export const wantsAnswer = ({ id, method }: Message): boolean => id !== undefined && method !== undefined;

/** The ids of the requests that want answers. */
export function waitingIds(messages: Messages | undefined): readonly RpcId[] {
  const ids: RpcId[] = [];
  for (const { id, method } of messages?.all ?? [])
    if (id !== undefined && method !== undefined) ids.push(id);
  return ids;
}

/** The messages whose answers may have to change, or must not pass: they list tools or tasks. Servers may answer one without an id, too. */
export const listing = (messages: Messages | undefined): readonly Message[] =>
  (messages?.all ?? []).filter(({ method }) => listsBy(method));

/** A request that begins a session. MCP 2026-07-28 has neither. */
export const initializes = ({ method }: Message): boolean => method === 'initialize';

/** A request that is not answered but by the end of its stream (MCP 2026-07-28, "Subscriptions"). */
export const listens = ({ method }: Message): boolean => method === 'subscriptions/listen';

/** JSON-RPC 2.0 §5.1. */
export const PARSE_ERROR = -32700;
export const INVALID_REQUEST = -32600;
export const METHOD_NOT_FOUND = -32601;
export const INVALID_PARAMS = -32602;

/** The most messages of a batch. Each is charged, and may need an error of its own. */
export const BATCH_MAX = 100;
/** The limits for JSON of holders. A worker reads what is large. */
export const MODEST = { depth: 200, parts: 1_000_000 };

/**
 * Reads the body of a POST. Refuses bodies that a server might understand differently.
 * @param conditions of arguments, by which calls are judged
 * @param scan what `scanMessages` has found, if it has looked
 * @param withAsked digests what a single request asks for
 */
export function readMessages(
  bytes: Buffer,
  conditions?: ToolArguments,
  scan?: Scan,
  withAsked = false,
): { messages: Messages } | { refusal: Refusal } {
  const scanned = scan ?? scanMessages(bytes, MODEST);
  if ('excess' in scanned)
    return invalid('nested too deeply, more than a million parts, or a name of over 16,000 bytes');
  const read = readJson(bytes);
  if (!read) {
    return { refusal: { code: 'invalid_json', message: 'Parse error: the body is not JSON in UTF-8.' } };
  }
  const { text, value } = read;
  const isBatch = Array.isArray(value);
  const each: unknown[] = isBatch ? value : [value];
  if (each.length === 0 || each.length > BATCH_MAX)
    return invalid(`a batch holds 1 to ${BATCH_MAX} messages`);
  const key = scanned.ambiguous;
  if (key !== undefined) return invalid(`${key} is repeated, or differs from a known name only in case`);
  const written = writtenIn(text, isBatch);
  const all = each.map((value, i) => readMessage(value, conditions, (path) => written(i, path)));
  const invalidMessage = all.find((message) => typeof message === 'string');
  if (invalidMessage !== undefined) return invalid(invalidMessage);
  const ids = handedIds(text, value);
  if (ids.length > IDS_MOST) return invalid(`a POST has at most ${IDS_MOST} ids`);
  const given = () => written(0, ['params', 'arguments']);
  const asked = withAsked && isJsonObject(value) && { asked: digestOf(value, given()) };
  return { messages: { all: all as Message[], isBatch, ...asked, ...(ids.length > 0 && { ids }) } };
}

/**
 * The same for all rounds of a request: their ids, states and inputs differ.
 * @param given the arguments as they are written, because different numbers may be one number of JavaScript
 */
function digestOf({ method, params }: JsonObject, given: string): string {
  const { name, uri } = isJsonObject(params) ? params : {};
  return createHash('sha256')
    .update(JSON.stringify([method, name, uri, given]))
    .digest('base64url');
}

/** Looks through the bytes of a POST before they are parsed. */
export const scanMessages = (bytes: Buffer, most: Modesty) => scanJson(bytes, most, JUDGE);

/** Reads large messages in workers, so that other calls do not wait. */
export type LargeMessages = {
  /** Reads the messages of a POST. The bytes are copied, because they are sent as they are. */
  readonly readMessages: (
    grant: QuotaOwner,
    bytes: Buffer,
    conditions?: McpArguments,
  ) => Promise<{ messages: Messages } | { refusal: Refusal }>;
};

/** The fields that the gateway reads. No other spelling of them may occur in a message. */
const READ = new NameTree([
  ...['id', 'method', 'result', 'error'].map((name) => [name]),
  ...['name', 'uri'].map((name) => ['params', name]),
  ...ID_FIELDS,
]);
const JUDGE = namesJudge(READ);

const invalid = (why: string): { refusal: Refusal } => ({
  refusal: { code: 'invalid_request', message: `Invalid Request: ${why}.` },
});

/**
 * Names are compared with known ones in every form that a server may take for them, and kept while the call runs. A `uri` is
 * a name, too: RFC 9110 §4.1 recommends at least 8,000 octets.
 */
const NAME_MAX_CHARS = 8_000;

/** Gives the text of the value at a path of a message. */
type Written = (path: readonly string[]) => string;

/** A message, or why the value is not a message. */
function readMessage(
  value: unknown,
  conditions: ToolArguments | undefined,
  written: Written,
): Message | string {
  if (!isJsonObject(value)) return 'a message is an object';
  const { method, params } = value;
  const id = rpcId(value.id, () => written(['id']));
  // An answer to one request could give back the charge of another.
  if (id === undefined && value.id !== undefined && value.id !== null)
    return 'id is a whole number, or a string of at most 1,024 characters';
  if (id !== undefined && isMarked(id)) return 'id is one of the gateway';
  if (method === undefined) {
    if (!('result' in value) && !('error' in value)) return 'a message has a method, a result or an error';
    return { id: undefined, method: undefined, name: undefined };
  }
  if (typeof method !== 'string' || method.length > NAME_MAX_CHARS)
    return `method is a string of at most ${NAME_MAX_CHARS} characters`;
  const name = nameIn(method, params);
  if (typeof name === 'string' && name.length > NAME_MAX_CHARS)
    return `params.${nameParam(method)} has at most ${NAME_MAX_CHARS} characters`;
  const isOdd = name !== undefined && typeof name !== 'string';
  const ofTool = method === 'tools/call' && typeof name === 'string' ? conditions?.of.get(name) : undefined;
  if (isOdd) return { id, method, name: undefined, hasOddName: true };
  if (ofTool) return { id, method, name, arguments: judgeArguments(params, ofTool) };
  if (method === 'notifications/cancelled') return { id, method, name, ...cancelled(params, written) };
  return { id, method, name };
}

function cancelled(params: unknown, written: Written): Pick<Message, 'cancels'> {
  const named = isJsonObject(params) ? params.requestId : undefined;
  const id = rpcId(named, () => written(['params', 'requestId']));
  return id === undefined ? {} : { cancels: id };
}

/** Judges `params.arguments`. A name that a lenient server may read as one of the names is refused, too. */
function judgeArguments(params: unknown, { names, conditions }: ArgumentRules): JudgedArguments {
  const object = isJsonObject(params) ? params : {};
  const sent = ownValue(object, 'arguments');
  const given = isJsonObject(sent) ? sent : {};
  const odd = findOdd('params', object, ARGUMENTS) ?? findOdd('params.arguments', given, names);
  if (odd) return odd;
  const unmet = conditions.find(([name, condition]) => !meets(ownValue(given, name), condition));
  return unmet ? { unmet: unmet[0] } : 'allowed';
}

const ARGUMENTS = new KnownNames(['arguments']);

const ownValue = (object: JsonObject, name: string): unknown =>
  Object.hasOwn(object, name) ? object[name] : undefined;

/** @param value undefined: the argument is missing */
const meets = (value: unknown, { equals, prefix }: ArgumentCondition): boolean =>
  prefix === undefined
    ? equals !== undefined && value === equals
    : typeof value === 'string' && value.startsWith(prefix);

function findOdd(within: string, object: JsonObject, known: KnownNames): JudgedArguments | undefined {
  for (const spelt of Object.keys(object)) {
    const meant = known.alike(spelt);
    if (meant !== undefined) return { param: `${within}.${meant}`, spelt: briefly(spelt), meant };
  }
  return undefined;
}

/** The parameter that `Mcp-Name` repeats (Streamable HTTP, "Standard Request Headers"; for tasks SEP-2663). */
export const nameParam = (method: string) => NAMED_BY.get(method) ?? 'name';

const NAMED_BY: ReadonlyMap<string, 'name' | 'uri' | 'taskId'> = new Map([
  ['resources/read', 'uri'],
  ['tasks/get', 'taskId'],
  ['tasks/update', 'taskId'],
  ['tasks/cancel', 'taskId'],
]);

const nameIn = (method: string, params: unknown): unknown =>
  isJsonObject(params) ? params[nameParam(method)] : undefined;

/**
 * Checks the headers of revision 2026-07-28 that repeat the body (Streamable HTTP, "Standard Request Headers"). A server may
 * rely on them, so they must agree with the body, which is charged.
 */
export function checkHeaders(headers: IncomingHttpHeaders, { all, isBatch }: Messages): Refusal | undefined {
  const [method, name] = [headers['mcp-method'], headers['mcp-name']];
  if (method === undefined && name === undefined) return undefined;
  const [message] = all;
  if (isBatch) return mismatch('Mcp-Method');
  if (method !== undefined && method !== message?.method) return mismatch('Mcp-Method');
  if (name !== undefined && decodeName(String(name)) !== message?.name) return mismatch('Mcp-Name');
  return undefined;
}

function mismatch(param: string): Refusal {
  return { code: 'invalid_request', param, message: `${param}: the header does not agree with the body.` };
}

/** Decodes `=?base64?…?=`, the form of names that a header cannot carry. */
function decodeName(value: string): string {
  const encoded = /^=\?base64\?([A-Za-z0-9+/=]*)\?=$/.exec(value)?.[1];
  return encoded === undefined ? value : Buffer.from(encoded, 'base64').toString('utf8');
}

/** A name as a header carries it (Streamable HTTP, "Value Encoding"). */
export const encodeName = (name: string): string =>
  /^[!-~]+$/.test(name) && !name.startsWith('=?base64?')
    ? name
    : `=?base64?${Buffer.from(name).toString('base64')}?=`;

/**
 * Errors of requests that did not run: method not found (JSON-RPC 2.0 §5.1), and of MCP 2026-07-28 a header that contradicts the body, a
 * capability that the client lacks, and a version that the server does not speak.
 */
export const UNRUN_CODES: ReadonlySet<unknown> = new Set([METHOD_NOT_FOUND, -32020, -32021, -32022]);

/** Whether an answer may say that a request did not run. Most do not, and need not be read. */
export const maySayUnrun = (answer: Buffer): boolean => answer.includes('-32601') || answer.includes('-3202');

/** A JSON-RPC answer as the gateway reads it. */
export type RpcAnswer = { readonly id: RpcId | undefined; readonly error: unknown };

/** Texts up to this length are quick to parse, whatever they hold. */
const SHORT_CHARS = 16_000;
/**
 * The limits for answers, which are read on the event loop. All that is done to one at these limits takes less than 20 ms. Lists of
 * thousands of tools are smaller.
 */
export const ANSWER_MAX_BYTES = 2 * 1024 * 1024;
export const ANSWER_MODEST = { depth: 200, parts: 50_000 };

/** Reads the answers in a JSON-RPC message or batch. Returns no answer if the text is not JSON, and no errors if it would take long to parse. */
export function readAnswers(text: string): readonly RpcAnswer[] {
  if (!isQuick(text))
    return messagesIn(text).flatMap(({ id }) => (id === undefined ? [] : [{ id, error: undefined }]));
  const value = parseJson(text);
  const all: readonly unknown[] = Array.isArray(value) ? value : [value];
  const written = writtenIn(text, Array.isArray(value));
  return all.flatMap((each, i) => {
    if (!isJsonObject(each) || (each.result === undefined && each.error === undefined)) return [];
    return [{ id: rpcId(each.id, () => written(i, ['id'])), error: each.error }];
  });
}

/** The value of an answer. Undefined if it is no JSON, or would take long to parse. */
export const parseAnswer = (text: string): unknown => (isQuick(text) ? parseJson(text) : undefined);

const isQuick = (text: string): boolean =>
  text.length <= SHORT_CHARS ||
  (text.length <= ANSWER_MAX_BYTES && isModest(Buffer.from(text), ANSWER_MODEST));
