import { randomUUID } from 'node:crypto';
import { z } from 'zod';
import {
  heardTokens,
  type Item,
  itemOf,
  NewItem,
  Response,
  type Running,
  runResponse,
  Settings,
} from './realtime-response.ts';
import { msOf, VoiceDetection } from './sound.ts';

/** The part of a WebSocket that a session needs. */
type Socket = { readonly send: (text: string) => void; readonly readyState: number };

const Sound = z.looseObject({ type: z.literal('audio/pcm', 'expected audio/pcm') });

const Detection = z.looseObject({
  type: z.enum(['server_vad', 'semantic_vad']),
  create_response: z.boolean().default(true),
  interrupt_response: z.boolean().default(true),
  idle_timeout_ms: z.int().nullable().default(null),
  silence_duration_ms: z.int().min(20).max(10_000).default(500),
});

/** A session that a client sets. */
const Session = Settings.extend({
  type: z.literal('realtime'),
  audio: z
    .looseObject({
      input: z.looseObject({ format: Sound.optional(), turn_detection: Detection.nullish() }).optional(),
      output: z.looseObject({ format: Sound.optional() }).optional(),
    })
    .optional(),
});

const PCM = { type: 'audio/pcm', rate: 24_000 } as const;

/** A session before its client sets anything. */
const defaults = (model: string) => ({
  ...({ type: 'realtime', object: 'realtime.session', id: `sess_${randomUUID()}`, model } as const),
  output_modalities: ['audio'] as ('audio' | 'text')[],
  instructions: '',
  tools: [],
  tool_choice: 'auto',
  max_output_tokens: 'inf' as const,
  tracing: null,
  truncation: 'auto',
  prompt: null,
  include: null,
  audio: {
    input: {
      format: PCM,
      transcription: null,
      noise_reduction: null,
      turn_detection: Detection.parse({ type: 'server_vad' }) as z.infer<typeof Detection> | null,
    },
    output: { format: PCM, voice: 'marin', speed: 1 },
  },
});

type State = z.infer<typeof Session> & ReturnType<typeof defaults>;

const Event = z.looseObject({ type: z.string(), event_id: z.string().nullish() });
type Event = z.infer<typeof Event>;

/** The last items of a conversation are kept. */
const MOST_ITEMS = 1_000;

/**
 * The socket of /v1/realtime (developers.openai.com/api/docs/guides/realtime-websocket and realtime-vad; `openai` 7.59, resources/realtime; all
 * of 2026-11-29). It hears that someone speaks, and not what is said: nothing is transcribed.
 */
export class RealtimeSession {
  readonly #socket: Socket;
  readonly #nextId: () => string;
  readonly #pauseMs: number;
  #session: State;
  #items: Item[] = [];
  readonly #running = new Map<string, Running>();
  #voice = new VoiceDetection();
  #speech = { item: '', fromMs: 0 };
  #bufferedMs = 0;
  #isDue = false;
  #ids = 0;

  /** @param nextId an id of a response */
  constructor(model: string, socket: Socket, nextId: () => string, pauseMs: number) {
    this.#socket = socket;
    this.#nextId = nextId;
    this.#pauseMs = pauseMs;
    this.#session = defaults(model);
    this.#send('session.created', { session: this.#session });
  }

  /** Answers one message of a client. */
  take(message: unknown): void {
    const read = Event.safeParse(jsonOf(message));
    const event = read.data ?? { type: '' };
    const serve = this.#serves.get(event.type);
    if (serve) serve(event);
    else this.#fail(event, 'invalid_value', `Invalid value: '${event.type.slice(0, 64)}'.`, 'type');
  }

  readonly #serves = new Map<string, (event: Event) => void>(
    Object.entries({
      'session.update': (event: Event) => this.#update(event),
      'input_audio_buffer.append': (event: Event) => this.#append(event),
      'input_audio_buffer.commit': (event: Event) => {
        const message = 'The buffer has less than 100 ms of sound.';
        if (this.#bufferedMs < 100) this.#fail(event, 'input_audio_buffer_commit_empty', message);
        else this.#commit(this.#newId(), this.#bufferedMs);
      },
      'input_audio_buffer.clear': () => {
        this.#bufferedMs = 0;
        this.#send('input_audio_buffer.cleared', {});
      },
      'conversation.item.create': (event: Event) => {
        const item = NewItem.safeParse(event.item);
        if (item.success) this.#add(itemOf(item.data, this.#newId()));
        else this.#invalid(event, 'item', item.error);
      },
      'conversation.item.retrieve': (event: Event) =>
        this.#with(event, ({ shown: item }) => this.#send('conversation.item.retrieved', { item })),
      'conversation.item.delete': (event: Event) =>
        this.#with(event, (item) => {
          this.#items = this.#items.filter((each) => each !== item);
          this.#send('conversation.item.deleted', { item_id: item.shown.id });
        }),
      'conversation.item.truncate': (event: Event) =>
        this.#with(event, ({ shown }) => {
          const { content_index, audio_end_ms } = event;
          this.#send('conversation.item.truncated', { item_id: shown.id, content_index, audio_end_ms });
        }),
      'response.create': (event: Event) => {
        const asked = Response.safeParse(event.response ?? {});
        const message = 'Conversation already has an active response in progress.';
        if (!asked.success) this.#invalid(event, 'response', asked.error);
        else if (this.#isBusy(asked.data))
          this.#fail(event, 'conversation_already_has_active_response', message);
        else this.#respond(asked.data);
      },
      'response.cancel': (event: Event) => {
        const { response_id: id } = event;
        const running = [...this.#running.values()].find((each) =>
          id === undefined ? each.isDefault : each.id === id,
        );
        if (running) running.cancel('client_cancelled');
        else this.#fail(event, 'response_cancel_not_active', 'No such response is under way.');
      },
    }),
  );

  #update(event: Event): void {
    const read = Session.safeParse({ type: 'realtime', ...(event.session as object | undefined) });
    if (read.success) {
      const { audio, ...rest } = read.data;
      const { input, output } = this.#session.audio;
      const heard = { input: { ...input, ...audio?.input }, output: { ...output, ...audio?.output } };
      this.#session = { ...this.#session, ...rest, audio: heard } as State;
      this.#send('session.updated', { session: this.#session });
    } else this.#invalid(event, 'session', read.error);
  }

  #append({ audio }: Event): void {
    const sound = Buffer.from(typeof audio === 'string' ? audio : '', 'base64');
    this.#bufferedMs += msOf(sound.length);
    const { turn_detection: detection } = this.#session.audio.input;
    if (!detection) return;
    for (const { is, ms } of this.#voice.hear(sound, detection.silence_duration_ms)) {
      if (is === 'started') this.#hearStart(ms, detection);
      else this.#hearEnd(ms, detection);
    }
  }

  #hearStart(ms: number, { interrupt_response: interrupts }: z.infer<typeof Detection>): void {
    this.#speech = { item: this.#newId(), fromMs: ms };
    const { item: item_id } = this.#speech;
    this.#send('input_audio_buffer.speech_started', { audio_start_ms: Math.round(ms), item_id });
    if (!interrupts) return;
    for (const response of this.#running.values()) if (response.isDefault) response.cancel('turn_detected');
  }

  #hearEnd(ms: number, detection: z.infer<typeof Detection>): void {
    const { item: item_id, fromMs } = this.#speech;
    this.#send('input_audio_buffer.speech_stopped', { audio_end_ms: Math.round(ms), item_id });
    this.#commit(item_id, ms - fromMs - detection.silence_duration_ms);
    this.#isDue = detection.create_response;
    this.#answer();
  }

  #commit(item_id: string, ms: number): void {
    this.#bufferedMs = 0;
    const previous_item_id = this.#items.at(-1)?.shown.id ?? null;
    this.#send('input_audio_buffer.committed', { item_id, previous_item_id });
    const content = [{ type: 'input_audio', transcript: null }];
    const shown = {
      ...{ id: item_id, object: 'realtime.item', type: 'message', role: 'user', status: 'completed' },
      content,
    };
    this.#add({ shown, said: '', text: 0, audio: heardTokens(ms) });
  }

  #add(item: Item): void {
    const previous_item_id = this.#items.at(-1)?.shown.id ?? null;
    this.#keep(item);
    this.#send('conversation.item.added', { previous_item_id, item: item.shown });
    this.#send('conversation.item.done', { previous_item_id, item: item.shown });
  }

  #keep(item: Item): void {
    this.#items.push(item);
    if (this.#items.length > MOST_ITEMS) this.#items.shift();
  }

  /** A response after a speech waits for the end of the one that the speech has interrupted. */
  #answer(): void {
    if (!this.#isDue || this.#isBusy({})) return;
    this.#isDue = false;
    this.#respond({});
  }

  #isBusy({ conversation }: z.infer<typeof Response>): boolean {
    return conversation !== 'none' && [...this.#running.values()].some((each) => each.isDefault);
  }

  #respond(own: z.infer<typeof Response>): void {
    const given = (own.input ?? []).flatMap((item) => {
      const read = NewItem.safeParse(item);
      return read.success ? [itemOf(read.data, this.#newId())] : [];
    });
    const { instructions, tools, tool_choice, output_modalities, max_output_tokens } = this.#session;
    const id = `resp_${this.#nextId()}`;
    const running = runResponse({
      id,
      settings: { instructions, tools, tool_choice, output_modalities, max_output_tokens, ...own },
      items: own.input ? given : [...this.#items],
      send: (type, rest) => this.#send(type, rest),
      isOpen: () => this.#socket.readyState === OPEN,
      pauseMs: this.#pauseMs,
      over: (item: Item) => {
        this.#running.delete(id);
        if (own.conversation !== 'none') this.#keep(item);
        this.#answer();
      },
    });
    this.#running.set(id, running);
  }

  #with(event: Event, use: (item: Item) => void): void {
    const item = this.#items.find(({ shown }) => shown.id === event.item_id);
    if (item) use(item);
    else this.#fail(event, 'item_not_found', 'The conversation has no such item.', 'item_id');
  }

  #newId = (): string => `item_${++this.#ids}`;

  #send(type: string, rest: object): void {
    if (this.#socket.readyState !== OPEN) return;
    this.#socket.send(JSON.stringify({ type, event_id: `event_${randomUUID()}`, ...rest }));
  }

  #invalid(event: Event, within: string, { issues: [issue] }: z.ZodError): void {
    const param = [within, ...(issue?.path ?? [])].join('.');
    this.#fail(event, 'invalid_value', `${param}: ${issue?.message ?? 'invalid'}`, param);
  }

  #fail(
    { event_id = null }: Partial<Event>,
    code: string,
    message: string,
    param: string | null = null,
  ): void {
    this.#send('error', { error: { type: 'invalid_request_error', code, message, param, event_id } });
  }
}

const OPEN = 1;

function jsonOf(message: unknown): unknown {
  if (typeof message !== 'string') return undefined;
  try {
    return JSON.parse(message);
  } catch {
    return undefined;
  }
}
