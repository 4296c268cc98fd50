import {
  type Json,
  type ProviderSocket,
  type ResponsesProvider,
  startResponsesProvider,
} from './responses-provider.ts';

/** A session as the provider has it. */
export type Session = {
  readonly of: ProviderSocket;
  config: Json;
  /** Bytes of sound that are not committed. */
  buffered: number;
  readonly running: Map<string, Response>;
  items: number;
};

/** A response under way. */
export type Response = {
  readonly id: string;
  readonly session: Session;
  readonly asked: Json;
  readonly isDefault: boolean;
  end: (status?: string, usage?: Json | null) => void;
};

export type RealtimeProvider = ResponsesProvider & {
  readonly sessions: Session[];
  /** Runs a response. It ends at once by default. */
  run: (response: Response) => void;
  /** Changes an event before it is sent. Undefined: it is not sent. */
  change: (event: Json) => Json | undefined;
  /** The usage of a response that states no other. */
  usage: () => Json;
  /** The bill of a usage by its own books, in microdollars. */
  bill: (usage: Json) => number;
  /** Responses that it began by itself, which no one has admitted. */
  selfBegun: number;
  readonly all: () => Response[];
};

/** Sound in which the provider hears someone speak, and stop. */
export const SPEECH = Buffer.from('someone speaks and stops').toString('base64');
export const SILENCE = Buffer.from('...').toString('base64');

let ids = 0;
const nextId = (kind: string) => `${kind}_${++ids}`;

/** Usage of text alone. */
export const usageOf = (input: number, output: number, more: Json = {}): Json => ({
  total_tokens: input + output,
  input_tokens: input,
  output_tokens: output,
  input_token_details: { text_tokens: input, audio_tokens: 0, image_tokens: 0, cached_tokens: 0 },
  output_token_details: { text_tokens: output, audio_tokens: 0 },
  ...more,
});

const DEFAULTS = {
  type: 'realtime',
  max_output_tokens: 'inf',
  audio: {
    input: {
      transcription: null,
      turn_detection: { type: 'server_vad', create_response: true, interrupt_response: true },
    },
    output: { voice: 'marin' },
  },
};

/** A provider of Realtime sessions with books of its own. A response takes 10 tokens of input and 5 of output. */
export async function startRealtimeProvider(): Promise<RealtimeProvider> {
  const provider: RealtimeProvider = Object.assign(await startResponsesProvider(), {
    sessions: [] as Session[],
    run: ({ end }: Response) => end(),
    change: (event: Json): Json | undefined => event,
    usage: () => usageOf(10, 5),
    bill: () => 0,
    selfBegun: 0,
    all: () => provider.sessions.flatMap(({ running }) => [...running.values()]),
  });
  const send = ({ of }: Session, type: string, rest: Json): void => {
    const event = provider.change({ type, event_id: nextId('event'), ...rest });
    if (event) of.socket.send(JSON.stringify(event));
  };
  provider.welcome = (of) => {
    const model = new URL(of.request.url ?? '', 'ws://x').searchParams.get('model');
    const config: Json = { id: nextId('sess'), object: 'realtime.session', model, ...DEFAULTS };
    const session: Session = { of, config, buffered: 0, running: new Map(), items: 0 };
    provider.sessions.push(session);
    send(session, 'session.created', { session: config });
  };
  provider.serve = (event, of) => {
    const session = provider.sessions.find((each) => each.of === of);
    if (session) SERVES[String(event.type)]?.(provider, session, event, send);
  };
  return provider;
}

type Send = (session: Session, type: string, rest: Json) => void;
type ServeEvent = (provider: RealtimeProvider, session: Session, event: Json, send: Send) => void;

const objectIn = (held: unknown, field: string): Json => ((held as Json | undefined)?.[field] ?? {}) as Json;

const fail = (session: Session, event: Json, code: string, send: Send) =>
  send(session, 'error', {
    error: {
      type: 'invalid_request_error',
      code,
      message: code,
      param: null,
      event_id: event.event_id ?? null,
    },
  });

const update: ServeEvent = (_provider, session, { session: change }, send) => {
  const { audio, ...rest } = change as Json;
  const held = objectIn(session.config, 'audio');
  session.config = {
    ...session.config,
    ...rest,
    audio: {
      input: { ...objectIn(held, 'input'), ...objectIn(audio, 'input') },
      output: { ...objectIn(held, 'output'), ...objectIn(audio, 'output') },
    },
  };
  send(session, 'session.updated', { session: session.config });
};

const commit = (session: Session, send: Send): string => {
  const item_id = `item_${++session.items}`;
  session.buffered = 0;
  send(session, 'input_audio_buffer.committed', { item_id, previous_item_id: null });
  return item_id;
};

/** Voice detection: whoever speaks interrupts, and gets an answer, as the session says. */
const append: ServeEvent = (provider, session, { audio }, send) => {
  session.buffered += String(audio).length;
  const detection = objectIn(objectIn(session.config.audio, 'input'), 'turn_detection');
  if (audio !== SPEECH || detection.type === undefined) return;
  const item_id = `item_${session.items + 1}`;
  send(session, 'input_audio_buffer.speech_started', { item_id, audio_start_ms: 0 });
  if (detection.interrupt_response !== false)
    for (const response of session.running.values()) if (response.isDefault) response.end('cancelled');
  send(session, 'input_audio_buffer.speech_stopped', { item_id, audio_end_ms: 9 });
  commit(session, send);
  if (detection.create_response === false) return;
  provider.selfBegun += 1;
  create(provider, session, {}, send);
};

const create: ServeEvent = (provider, session, event, send) => {
  const asked = (event.response ?? {}) as Json;
  const isDefault = asked.conversation !== 'none';
  if (isDefault && [...session.running.values()].some((each) => each.isDefault))
    return fail(session, event, 'conversation_already_has_active_response', send);
  const id = nextId('resp');
  const metadata = asked.metadata ?? null;
  const of = { id, object: 'realtime.response', metadata, conversation_id: isDefault ? 'conv_1' : null };
  const response: Response = {
    ...{ id, session, asked, isDefault },
    end: (status = 'completed', usage = provider.usage()) => {
      if (!session.running.delete(id)) return;
      const { output_tokens: output } = (usage ?? { output_tokens: 0 }) as { output_tokens: number };
      provider.billed += provider.bill(usage ?? {});
      const said = [{ type: 'output_text', text: 'Hello.' }];
      const item = {
        id: `item_${id}`,
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: said,
      };
      const output_ = output > 0 ? [item] : [];
      send(session, 'response.done', { response: { ...of, status, output: output_, usage } });
    },
  };
  session.running.set(id, response);
  send(session, 'response.created', { response: { ...of, status: 'in_progress', output: [], usage: null } });
  const place = { response_id: id, item_id: `item_${id}`, output_index: 0, content_index: 0 };
  send(session, 'response.output_text.delta', { ...place, delta: 'Hello.' });
  provider.run(response);
};

/** It has no items that a holder could name. */
const unknownItem: ServeEvent = (_provider, session, event, send) =>
  fail(session, event, 'item_not_found', send);

const SERVES: Readonly<Record<string, ServeEvent>> = {
  'session.update': update,
  'input_audio_buffer.append': append,
  'input_audio_buffer.commit': (_provider, session, event, send) =>
    session.buffered === 0
      ? fail(session, event, 'input_audio_buffer_commit_empty', send)
      : void commit(session, send),
  'conversation.item.create': (_provider, session, { item }, send) =>
    send(session, 'conversation.item.added', {
      item: { id: `item_${++session.items}`, ...(item as Json) },
      previous_item_id: null,
    }),
  'response.create': create,
  'conversation.item.truncate': unknownItem,
  'conversation.item.delete': unknownItem,
  'conversation.item.retrieve': unknownItem,
  'response.cancel': (_provider, session, event, send) => {
    const { response_id: id } = event;
    const meant = [...session.running.values()].filter((each) =>
      id === undefined ? each.isDefault : each.id === id,
    );
    if (meant.length === 0) fail(session, event, 'response_cancel_not_active', send);
    for (const response of meant) response.end('cancelled');
  },
};
