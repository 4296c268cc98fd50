import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { countTokens, piecesOf, SANDBOX_SAYS, SANDBOX_VOICE } from './reply.ts';
import { msOf, tone } from './sound.ts';

// The shapes of `openai` 7.59, resources/realtime (2026-11-29).

const Tool = z.looseObject({ type: z.literal('function'), name: z.string(), parameters: z.unknown() });

const Part = z.looseObject({
  text: z.string().nullish(),
  transcript: z.string().nullish(),
  audio: z.string().nullish(),
});

/** An item that a client adds to a conversation. */
export const NewItem = z.looseObject({
  id: z.string().optional(),
  type: z.enum(['message', 'function_call', 'function_call_output']),
  content: z.array(Part).optional(),
  output: z.string().optional(),
});

/** The fields that a session and a response both have. */
export const Settings = z.looseObject({
  instructions: z.string().optional(),
  tools: z.array(Tool).optional(),
  tool_choice: z.union([z.string(), z.looseObject({ name: z.string() })]).optional(),
  output_modalities: z.array(z.enum(['text', 'audio'])).optional(),
  max_output_tokens: z.union([z.int().min(1), z.literal('inf')]).optional(),
});

export const Response = Settings.extend({
  conversation: z.string().optional(),
  metadata: z.record(z.string(), z.string()).nullish(),
  input: z.array(z.looseObject({})).optional(),
});

/** An item of a conversation. */
export type Item = {
  /** As the API shows it. */
  readonly shown: { readonly id: string; readonly type: string; readonly [field: string]: unknown };
  readonly said: string;
  readonly text: number;
  readonly audio: number;
};

/** One token is 100 ms of what a user says, and 50 ms of an answer (developers.openai.com/api/docs/guides/realtime-costs, 2026-11-29). */
export const heardTokens = (ms: number): number => Math.ceil(ms / 100);
const PIECE_MS = 200;
const PIECE_TOKENS = PIECE_MS / 50;

export function itemOf(item: z.infer<typeof NewItem>, id: string): Item {
  const said = item.output ?? (item.content ?? []).map((part) => part.text ?? part.transcript ?? '').join('');
  const shown = { object: 'realtime.item', status: 'completed', ...item, id: item.id ?? id };
  const sound = (item.content ?? []).map((part) => Buffer.byteLength(part.audio ?? '', 'base64'));
  const audio = sound.reduce((all, bytes) => all + heardTokens(msOf(bytes)), 0);
  return { shown, said: said.slice(0, 500), text: countTokens([said]), audio };
}

export type Send = (type: string, rest: object) => void;

/** A response under way. */
export type Running = {
  readonly id: string;
  readonly isDefault: boolean;
  readonly cancel: (reason: 'client_cancelled' | 'turn_detected') => void;
};

export type ToRun = {
  readonly id: string;
  readonly settings: z.infer<typeof Response>;
  readonly items: readonly Item[];
  readonly send: Send;
  readonly isOpen: () => boolean;
  readonly pauseMs: number;
  /** Gets the item of the response once it has ended. */
  readonly over: (item: Item) => void;
};

/** Begins a response: words or sound piece by piece, or the call of a tool. */
export function runResponse(asked: ToRun): Running {
  const { id, settings, items } = asked;
  const isDefault = settings.conversation !== 'none';
  let why: string | undefined;
  const read = inputOf(settings, items);
  const input = read.text + read.audio === 0 ? FRAME : read;
  const tool = toolFor(settings, items.at(-1));
  const began = { ...head(asked), status: 'in_progress', status_details: null, output: [], usage: null };
  asked.send('response.created', { response: began });
  const ran = tool ? callTool(asked, tool) : speak(asked, () => why !== undefined);
  void ran.then(({ item, output, isCut }) => {
    const status = why !== undefined ? 'cancelled' : isCut ? 'incomplete' : 'completed';
    const reason = why ?? (isCut ? 'max_output_tokens' : undefined);
    const ended = {
      ...head(asked),
      status,
      status_details: { type: status, ...(reason !== undefined && { reason }) },
      output: [item.shown],
      usage: usageOf(input, output),
    };
    asked.send('response.done', { response: ended });
    asked.over(item);
  });
  return {
    id,
    isDefault,
    cancel: (reason) => {
      why ??= reason;
    },
  };
}

type Tokens = { readonly text: number; readonly audio: number };
type Ended = { readonly item: Item; readonly output: Tokens; readonly isCut: boolean };

const head = ({ id, settings }: ToRun): object => ({
  object: 'realtime.response',
  id,
  conversation_id: settings.conversation === 'none' ? null : 'conv_sandbox',
  output_modalities: settings.output_modalities ?? ['audio'],
  max_output_tokens: settings.max_output_tokens ?? 'inf',
  metadata: settings.metadata ?? null,
});

const sum = (all: readonly Tokens[]): Tokens =>
  all.reduce((before, { text, audio }) => ({ text: before.text + text, audio: before.audio + audio }), {
    text: 0,
    audio: 0,
  });

/** The conversation is read again for each response: its last items, as far as the window has room for them and for the longest answer. */
function inputOf({ instructions = '', tools = [] }: z.infer<typeof Response>, items: readonly Item[]) {
  const asked = countTokens([instructions, ...tools.map((each) => JSON.stringify(each))]);
  let read: Tokens = { text: Math.min(asked, MOST_INPUT), audio: 0 };
  for (const item of items.toReversed()) {
    const more = sum([read, item]);
    if (more.text + more.audio > MOST_INPUT) break;
    read = more;
  }
  return read;
}

const MOST_INPUT = SANDBOX_VOICE.facts.window - SANDBOX_VOICE.facts.output;

const usageOf = (input: Tokens, output: Tokens): object => ({
  total_tokens: input.text + input.audio + output.text + output.audio,
  input_tokens: input.text + input.audio,
  output_tokens: output.text + output.audio,
  input_token_details: {
    ...{ text_tokens: input.text, audio_tokens: input.audio, image_tokens: 0, cached_tokens: 0 },
    cached_tokens_details: { text_tokens: 0, audio_tokens: 0, image_tokens: 0 },
  },
  output_token_details: { text_tokens: output.text, audio_tokens: output.audio },
});

/** An answer never comes of no input: an empty conversation has tokens of its format. */
const FRAME: Tokens = { text: 4, audio: 0 };

/** The tool that `tool_choice` names, else the first one, unless a tool has just answered. */
function toolFor({ tools = [], tool_choice: choice }: z.infer<typeof Response>, last: Item | undefined) {
  if (choice === 'none' || last?.shown.type === 'function_call_output') return undefined;
  return typeof choice === 'object' ? tools.find(({ name }) => name === choice.name) : tools[0];
}

async function callTool(
  { id, items, send, settings }: ToRun,
  { name, parameters }: z.infer<typeof Tool>,
): Promise<Ended> {
  const written = JSON.stringify(argumentsFor(parameters, items.at(-1)?.said ?? ''));
  const call = { id: `item_${id}`, object: 'realtime.item', type: 'function_call', name };
  const place = { response_id: id, item_id: call.id, output_index: 0, call_id: `call_${id}` };
  const begun = { ...call, call_id: place.call_id, status: 'in_progress', arguments: '' };
  const shown = { ...begun, status: 'completed', arguments: written };
  const isKept = settings.conversation !== 'none';
  send('response.output_item.added', { response_id: id, output_index: 0, item: begun });
  if (isKept) send('conversation.item.added', { previous_item_id: idOf(items.at(-1)), item: begun });
  send('response.function_call_arguments.delta', { ...place, delta: written });
  send('response.function_call_arguments.done', { ...place, name, arguments: written });
  if (isKept) send('conversation.item.done', { previous_item_id: idOf(items.at(-1)), item: shown });
  send('response.output_item.done', { response_id: id, output_index: 0, item: shown });
  const text = countTokens([name, written]);
  return { item: { shown, said: written, text, audio: 0 }, output: { text, audio: 0 }, isCut: false };
}

const Schema = z.looseObject({ properties: z.record(z.string(), z.looseObject({ type: z.string() })) });

/** An argument for each parameter: a text is what the user said. */
function argumentsFor(parameters: unknown, said: string): object {
  const { properties } = Schema.safeParse(parameters).data ?? { properties: {} };
  const example: Record<string, unknown> = { string: said, number: 1, integer: 1, boolean: true, array: [] };
  return Object.fromEntries(
    Object.entries(properties).map(([name, { type }]) => [name, example[type] ?? {}]),
  );
}

const idOf = (item: Item | undefined): string | null => item?.shown.id ?? null;

/** How an answer continues. */
function answerTo(last: Item | undefined): string {
  if (last?.shown.type === 'function_call_output') return `The tool returned: ${last.said}`;
  return last && last.audio > 0 && last.said === ''
    ? `You spoke for ${(last.audio / 10).toFixed(1)} seconds.`
    : `You said: ${last?.said ?? ''}`;
}

async function speak(asked: ToRun, isCancelled: () => boolean): Promise<Ended> {
  const { id, items, send, settings, isOpen, pauseMs } = asked;
  const isSound = settings.output_modalities?.[0] !== 'text';
  const kind = isSound ? 'output_audio' : 'output_text';
  const most = settings.max_output_tokens === 'inf' ? undefined : settings.max_output_tokens;
  const begun = { id: `item_${id}`, object: 'realtime.item', type: 'message', role: 'assistant' };
  const place = { response_id: id, item_id: begun.id, output_index: 0, content_index: 0 };
  const partOf = (text: string) => (isSound ? { type: 'audio', transcript: text } : { type: 'text', text });
  const pieces = piecesOf(`${SANDBOX_SAYS} ${answerTo(items.at(-1))}`);
  const empty = { ...begun, status: 'in_progress', content: [] };
  send('response.output_item.added', { response_id: id, output_index: 0, item: empty });
  const previous_item_id = idOf(items.at(-1));
  const isKept = settings.conversation !== 'none';
  if (isKept) send('conversation.item.added', { previous_item_id, item: empty });
  send('response.content_part.added', { ...place, part: partOf('') });

  let [said, output] = ['', sum([])];
  let isCut = false;
  for (const [pitch, piece] of pieces.entries()) {
    const next = sum([output, { text: countTokens([piece]), audio: isSound ? PIECE_TOKENS : 0 }]);
    isCut = most !== undefined && next.text + next.audio > most;
    if (isCut || isCancelled() || !isOpen()) break;
    [said, output] = [said + piece, next];
    send(isSound ? 'response.output_audio_transcript.delta' : 'response.output_text.delta', {
      ...place,
      delta: piece,
    });
    const delta = isSound && tone(PIECE_MS, pitch).toString('base64');
    if (delta) send('response.output_audio.delta', { ...place, delta });
    await sleep(pauseMs);
  }

  const isWhole = !isCut && !isCancelled();
  const content = [isSound ? { type: kind, transcript: said } : { type: kind, text: said }];
  const shown = { ...begun, status: isWhole ? 'completed' : 'incomplete', content };
  if (isSound) send('response.output_audio.done', place);
  send(isSound ? 'response.output_audio_transcript.done' : 'response.output_text.done', {
    ...place,
    ...(isSound ? { transcript: said } : { text: said }),
  });
  send('response.content_part.done', { ...place, part: partOf(said) });
  if (isKept) send('conversation.item.done', { previous_item_id, item: shown });
  send('response.output_item.done', { response_id: id, output_index: 0, item: shown });
  return { item: { shown, said, ...output }, output, isCut };
}
