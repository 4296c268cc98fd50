import { randomUUID } from 'node:crypto';
import type { Refusal } from '@presign/schema';
import { WebSocket } from 'ws';
import { CallReport } from '../call-report.ts';
import type { Policy } from '../grant/policy.ts';
import type { Secrets } from '../http/hide-secrets.ts';
import { endRefusal } from '../llm/judge-end.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import type { Sent } from '../llm/send.ts';
import type { Create, Heard, SocketDialect, Unasked } from './dialect.ts';
import { BINARY, closeCodeOf, type End, MANY_TURNS, MOST_TURNS, STOPPING, UNKNOWN_ERROR } from './end.ts';
import { Flow } from './flow.ts';
import { closeWith } from './framing.ts';
import { noteHeard } from './note-heard.ts';
import { Strays } from './strays.ts';
import { beginTurn, chargeUnasked, KEY_ROTATED, NO_ROOM, type SocketOf, type Turn } from './turn.ts';
import { reserveUnfinished } from './unfinished.ts';

/** A socket that was accepted. */
export type Accepted = {
  readonly requestId: string;
  readonly of: Omit<SocketOf, 'hasLeft'>;
  readonly policy: Policy;
  readonly secrets: Secrets;
  readonly dialect: SocketDialect;
  readonly holder: WebSocket;
  readonly upstream: WebSocket;
};

type Why = Extract<Sent, { is: 'broken' }>['why'];

/** How long the turn under way of a holder who has left may take. Its usage is known at its end only. */
const UNHEARD_MS = 60_000;
/** How long an upstream has to set a session. */
const OPENING_MS = 30_000;
/** The longest time of a timer. */
const TIMER_MAX_MS = 2 ** 31 - 1;

/** One socket, from its handshake to its end. */
export class Connection {
  readonly #deps: LlmDeps;
  readonly #own: Accepted;
  readonly #of: SocketOf;
  readonly #flow: Flow;
  readonly #turns = new Map<string, Turn>();
  readonly #endings = new Set<Promise<void>>();
  readonly #strays = new Strays();
  readonly #undo: (() => void)[] = [];
  readonly #closed: Promise<void>;
  /** Resolves once events of the holder may pass. */
  readonly #ready: Promise<void>;
  #setReady = () => {};
  #inOrder: Promise<unknown> = Promise.resolve();
  #count = 0;
  #end: End | undefined;
  #holderLeft = false;
  #isOver = false;

  constructor(deps: LlmDeps, own: Accepted) {
    this.#deps = deps;
    this.#own = own;
    this.#of = { ...own.of, hasLeft: () => this.#holderLeft };
    const { holder, upstream } = own;
    const { grant } = own.of;
    this.#flow = new Flow(deps.readQuota, grant, own, (frame, isBinary) => {
      const taking = this.#take(frame, isBinary).catch((error: Error) => this.#failedHere(error));
      // A gateway that stops waits for an admission.
      deps.underWay.track(taking);
      return taking;
    });
    this.#ready = own.dialect.opening ? new Promise((resolve) => (this.#setReady = resolve)) : READY;
    this.#closed = Promise.all([ended(holder), ended(upstream)]).then(() => {});
    upstream.on('message', (frame: Buffer) => this.#heard(frame));
    holder.once('close', (code) => this.#left(code));
    upstream.once('close', (code, reason) => void this.#upstreamClosed(code, reason));
    const memory = deps.bodyMemory.newReservation();
    memory.belongsTo(grant.id);
    reserveUnfinished(holder, memory, () => this.#full());
    this.#watch();
    if (own.dialect.opening) void this.#flow.toUpstream(own.dialect.opening);
  }

  /** How many turns were begun. */
  get turns(): number {
    return this.#count;
  }

  /** Resolves when both sides are closed, and all turns are settled. */
  async whenOver(): Promise<void> {
    await this.#closed;
    this.#isOver = true;
    this.#setReady();
    this.#flow.stop();
    for (const undo of this.#undo) undo();
    await Promise.all([...this.#turns.values()].map((turn) => this.#break(turn, 'failure')));
    await Promise.all(this.#endings);
  }

  beat(): void {
    this.#flow.beat();
  }

  /** Ends it at once. Its turns are charged their hold. */
  cut(why: Why): void {
    if (this.#isOver) return;
    const refusal = endRefusal({ is: 'unanswered', why }) ?? STOPPING;
    const end = { code: closeCodeOf(refusal) ?? (why === 'failure' ? 1011 : 1001), refusal };
    this.#end = why === 'failure' ? (this.#end ?? end) : end;
    const running = this.#running();
    for (const turn of running) this.#track(this.#break(turn, why));
    if (running.length === 0) this.#say(refusal, this.#own.requestId, '');
    closeWith(this.#own.upstream, 1000);
    void Promise.all(this.#endings).then(() => this.#close());
  }

  /** Ends it as soon as no turn runs. */
  endWith(end: End): void {
    this.#end ??= end;
    this.#closeIfIdle();
  }

  /** There is no memory for a message that is not whole yet. It is read no further. */
  #full(): void {
    this.#flow.stopReading();
    this.#refuseUnread(NO_ROOM, '');
    this.endWith({ code: 1013, refusal: NO_ROOM });
  }

  #watch(): void {
    const { grant } = this.#of;
    const { now, upstreamTimeoutMs, revocations, closing } = this.#deps;
    const untilExpiry = Math.max(0, Math.min(grant.expiresAtMs - now(), TIMER_MAX_MS));
    const expire = () => {
      if (now() >= grant.expiresAtMs) this.endWith({ code: 4401, refusal: { code: 'token_expired' } });
    };
    const timers = [
      setTimeout(expire, untilExpiry),
      setTimeout(() => this.cut('timeout'), upstreamTimeoutMs),
    ];
    if (this.#own.dialect.opening) {
      const late = setTimeout(() => this.#stopLawless('the session was not set'), OPENING_MS);
      timers.push(late);
      void this.#ready.then(() => clearTimeout(late));
    }
    const stop = () => this.endWith({ code: 1001, refusal: STOPPING });
    closing.addEventListener('abort', stop);
    this.#undo.push(
      () => timers.forEach(clearTimeout),
      () => closing.removeEventListener('abort', stop),
      revocations.watch(this.#own.policy.ref, (why) => this.cut(why)),
    );
    if (closing.aborted) stop();
  }

  /** Takes a message of the holder. The next one waits for it. */
  async #take(frame: Buffer, isBinary: boolean): Promise<void> {
    await this.#ready;
    await this.#oneByOne(() => this.#takeNext(frame, isBinary));
  }

  /** Events of the holder and turns that are due are begun one after another, so that a lane never gets two turns. */
  #oneByOne(work: () => Promise<void>): Promise<void> {
    const after = this.#inOrder.then(work);
    this.#inOrder = after.catch(() => {});
    return after;
  }

  async #takeNext(frame: Buffer, isBinary: boolean): Promise<void> {
    if (this.#isOver || this.#holderLeft) return;
    if (isBinary) return this.#refuseUnread(BINARY, '');
    const asked = await this.#own.dialect.read(frame);
    if (asked.is === 'refused') return this.#refuseUnread(asked.refusal, asked.label);
    if (asked.is === 'turn') return this.#begin(asked.create, frame.length);
    if (this.#own.upstream.readyState === WebSocket.OPEN) await this.#flow.toUpstream(asked.frame);
  }

  /** Begins the turn that is due, if one is. */
  #beginDue(): void {
    const { due } = this.#own.dialect;
    if (!due || this.#isOver) return;
    const beginning = this.#oneByOne(async () => {
      if (this.#isOver || this.#holderLeft || this.#end) return;
      const create = due((lane) => this.#turns.has(lane));
      if (create) await this.#begin(create, create.body.length);
    });
    this.#deps.underWay.track(beginning.catch((error: Error) => this.#failedHere(error)));
  }

  async #begin(create: Create, frameBytes: number): Promise<void> {
    const early = this.#earlyRefusal(create.lane);
    if (early) return this.#refuseUnread(early, create.label);
    const begun = await beginTurn(this.#deps, this.#of, this.#count + 1, create, frameBytes);
    if ('refusal' in begun) return this.#refused(begun.refusal, begun.requestId, create.label);
    this.#count++;
    const { turn } = begun;
    const isOpen = this.#own.upstream.readyState === WebSocket.OPEN && !this.#holderLeft;
    if (!isOpen || this.#end) {
      const refusal = await turn.unsent();
      if (refusal) this.#say(this.#end?.refusal ?? refusal, turn.requestId, turn.label);
      return;
    }
    for (const other of this.#running()) turn.isAlone = other.isAlone = false;
    this.#turns.set(turn.lane, turn);
    turn.sent();
    await this.#flow.toUpstream(begun.frame);
  }

  #earlyRefusal(lane: string): Refusal | undefined {
    if (this.#end) return this.#end.refusal;
    if (this.#turns.has(lane)) return this.#own.dialect.busy;
    return this.#turns.size >= MOST_TURNS ? MANY_TURNS : undefined;
  }

  /** Refuses an event of which no turn was made. It is a refused call of its URL. */
  #refuseUnread(refusal: Refusal, label: string): void {
    const { grant, incoming, connectionId } = this.#of;
    const report = new CallReport('llm', randomUUID(), { method: grant.method, headers: incoming.headers });
    const { policy } = this.#own;
    Object.assign(report, { grant, policy, provider: grant.provider.id, connection: connectionId });
    this.#deps.report(report, refusal);
    this.#refused(refusal, report.requestId, label);
  }

  #refused(refusal: Refusal, requestId: string, label: string): void {
    this.#say(refusal, requestId, label);
    const code = refusal === KEY_ROTATED ? 1001 : closeCodeOf(refusal);
    if (code !== undefined) this.endWith({ code, refusal });
  }

  #say(refusal: Refusal, requestId: string, label: string): void {
    this.#flow.toHolder(Buffer.from(this.#own.dialect.errorEvent(refusal, requestId, label)));
  }

  /** Takes an event of the upstream. The last one of a turn waits for the turn to be settled. */
  #heard(frame: Buffer): void {
    const heard = this.#own.dialect.hear(frame, this.#running());
    const shown = 'shown' in heard && heard.shown ? heard.shown : frame;
    const masked = this.#own.secrets.mask(shown);
    const ending = noteHeard(heard, frame);
    if (!ending) {
      this.#flow.toHolder(masked);
      this.#act(heard);
      return;
    }
    // Its bill is not known, so nothing more is sent.
    if (heard.is === 'failed') {
      this.#end ??= UNKNOWN_ERROR;
      this.#strays.turnOver(ending.turn);
    }
    this.#track(
      ending.over.then(() => {
        this.#turns.delete(ending.turn.lane);
        this.#flow.toHolder(masked);
        this.#closeIfIdle();
        this.#beginDue();
      }),
    );
  }

  #act(heard: Heard<Turn>): void {
    if (heard.is === 'stray') this.#deps.log.warn({ connection: this.#own.requestId }, STRAY);
    else if (heard.is === 'unclear') this.#breakAll();
    else if (heard.is === 'ready') this.#setReady();
    else if (heard.is === 'due') this.#beginDue();
    else if (heard.is === 'lawless') this.#stopLawless(heard.why, heard.unasked);
  }

  /** Stops an API that does what nothing has admitted. */
  #stopLawless(why: string, unasked?: Unasked): void {
    if (unasked && !this.#strays.isNew(unasked)) return;
    if (unasked) this.#track(chargeUnasked(this.#deps, this.#of, ++this.#count, this.#own.dialect));
    const { id, provider } = this.#of.grant;
    const of = { connection: this.#own.requestId, grant: id, provider: provider.id };
    this.#deps.log.error({ ...of, why }, 'a socket was cut');
    this.cut('failure');
    this.#setReady();
  }

  /** An error that is about no one turn leaves it open what is billed. */
  #breakAll(): void {
    const running = this.#running();
    if (running.length > 0) this.#end ??= UNKNOWN_ERROR;
    for (const turn of running) this.#track(this.#break(turn, 'failure').then(() => this.#closeIfIdle()));
  }

  /** A fault of this gateway. Each turn under way is charged its hold. */
  #failedHere(error: Error): void {
    // Only the error's name is logged: a message may quote a secret.
    this.#deps.log.error({ connection: this.#own.requestId, error: error.name }, 'a socket was cut');
    this.cut('failure');
  }

  #running(): Turn[] {
    return [...this.#turns.values()].filter(({ isEnding }) => !isEnding);
  }

  async #break(turn: Turn, why: Why): Promise<void> {
    if (turn.isEnding) return;
    this.#strays.turnOver(turn);
    const refusal = (await turn.broken(why)) ?? endRefusal({ is: 'unanswered', why });
    this.#turns.delete(turn.lane);
    if (refusal) this.#say(refusal, turn.requestId, turn.label);
  }

  /** The upstream stays for the turns under way, whose usage it states at their end. */
  #left(code: number): void {
    this.#holderLeft = true;
    this.#flow.drop();
    if (this.#turns.size === 0) closeWith(this.#own.upstream, code);
    const late = setTimeout(() => this.cut('left'), UNHEARD_MS);
    this.#undo.push(() => clearTimeout(late));
  }

  async #upstreamClosed(code: number, reason: Buffer): Promise<void> {
    for (const turn of this.#running()) this.#track(this.#break(turn, 'failure'));
    await Promise.all(this.#endings);
    if (this.#end) return this.#close();
    const text = this.#own.secrets.mask(reason).toString();
    closeWith(this.#own.holder, code === 1006 ? 1011 : code, text);
  }

  #closeIfIdle(): void {
    if (this.#turns.size > 0 || this.#isOver) return;
    if (this.#end) this.#close();
    else if (this.#holderLeft) closeWith(this.#own.upstream, 1000);
  }

  /** Closes both sides. The holder's gets what was written to it before. */
  #close(): void {
    const { holder, upstream } = this.#own;
    if (this.#end) closeWith(holder, this.#end.code, this.#end.refusal.code);
    closeWith(upstream, 1000);
  }

  #track(ending: Promise<void>): void {
    const caught = ending.catch((error: Error) => this.#failedHere(error));
    this.#endings.add(caught);
    void caught.finally(() => this.#endings.delete(caught));
  }
}

const READY = Promise.resolve();
const STRAY = 'a response ended that is no turn of its socket';

const ended = (socket: WebSocket): Promise<void> =>
  new Promise((resolve) => {
    if (socket.readyState === WebSocket.CLOSED) resolve();
    else socket.once('close', () => resolve());
  });
