import type { Refusal } from '@presign/schema';
import { WebSocket } from 'ws';
import { endRefusal } from '../llm/judge-end.ts';
import type { LlmDeps } from '../llm/llm-deps.ts';
import type { Sent } from '../llm/send.ts';
import type { Accepted } from './accepted.ts';
import { Closing } from './closed.ts';
import { type Deadline, Deadlines } from './deadlines.ts';
import type { Create, Heard, Unasked } from './dialects/dialect.ts';
import { BINARY, type End, endAfter, STOP, tooMany, tooOld, UNCLEAR } from './dialects/end.ts';
import { isOfResponse } from './dialects/event.ts';
import { Endings } from './endings.ts';
import { Flow, type Taker } from './flow.ts';
import { closeWith } from './framing.ts';
import { noteHeard } from './note-heard.ts';
import { reportRefused } from './report-refused.ts';
import { STRAY, Strays } from './strays.ts';
import { beginTurn, chargeUnasked, type SocketOf, type Turn } from './turn.ts';

type Why = Extract<Sent, { is: 'broken' }>['why'];

/** One socket, from its handshake to its end. */
export class Connection implements Taker {
  readonly #deps: LlmDeps;
  readonly #own: Accepted;
  readonly #of: SocketOf;
  readonly #flow: Flow;
  readonly #turns = new Map<string, Turn>();
  readonly #endings = new Endings();
  readonly #strays = new Strays();
  readonly #deadlines: Deadlines;
  readonly #unwatch: () => void;
  /** Resolves when both sides are closed, and all turns are settled. */
  readonly over: Promise<void>;
  #resolveOver = () => {};
  /** Resolves once events of the holder may pass. Undefined: they may. */
  #ready: Promise<void> | undefined;
  #setReady = () => {};
  #inOrder: Promise<unknown> = NOW;
  /** Events and turns that have not started yet. */
  #inLine = 0;
  /** How many turns were begun. */
  turns = 0;
  readonly closing = new Closing();
  #holderLeft = false;
  #isOver = false;

  constructor(deps: LlmDeps, own: Accepted) {
    this.#deps = deps;
    this.#own = own;
    this.#of = { ...own.of, hasLeft: () => this.#holderLeft };
    const { holder, upstream } = own;
    this.over = new Promise((resolve) => (this.#resolveOver = resolve));
    this.#flow = new Flow(deps, own.of.grant, own, this);
    holder.on('close', (code) => this.#left(code));
    upstream.on('close', (code, reason) => void this.#upstreamClosed(code, reason));
    const opening = own.dialect.opening?.();
    if (opening) {
      this.#ready = new Promise((resolve) => (this.#setReady = resolve));
      void this.#flow.toUpstream(opening);
    }
    const { expiresAtMs } = own.of.grant;
    this.#deadlines = new Deadlines(deps, expiresAtMs, opening !== undefined, this);
    this.#unwatch = deps.revocations.watch(own.policy.ref, this, this.#deadlines);
    if (deps.closing.aborted) this.stop();
  }

  beat(): void {
    this.#flow.beat();
  }

  /** Ends it at once. Its turns are charged their hold. */
  cut(why: Why): void {
    if (this.#isOver) return;
    const refusal = endRefusal({ is: 'unanswered', why }) ?? STOP.refusal;
    this.closing.cut(refusal, why);
    const running = this.#running();
    for (const turn of running) this.#track(this.#break(turn, why));
    if (running.length === 0) this.#say(refusal, this.#own.requestId, '');
    closeWith(this.#own.upstream, 1000);
    void this.#endings.over().then(() => this.#close());
  }

  /** Ends it as soon as no turn runs. */
  endWith(end: End): void {
    this.closing.end ??= end;
    this.#closeIfIdle();
  }

  /** Ends it as soon as no turn runs, because the gateway stops. */
  stop(): void {
    this.endWith(STOP);
  }

  refuse(refusal: Refusal, frame: Buffer): void {
    this.#safely(() => this.#refuseUnread(refusal, this.#own.dialect.labelOf(frame)));
  }

  readonly unread = (end: End): void => {
    this.closing.closes(this.closing.end ?? end);
    this.#safely(() => this.#refuseUnread(end.refusal, ''));
    this.endWith(end);
  };

  /** Does the work of an event of a peer. An error in it ends only this socket. */
  #safely(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#failedHere(error as Error);
    }
  }

  passed(which: Deadline): void {
    if (which === 'expired') this.endWith({ code: 4401, refusal: { code: 'token_expired' } });
    else if (which === 'old') this.endWith(tooOld(this.#deps.upstreamTimeoutMs));
    else if (which === 'timeout') this.#breakAll(this.#running().slice(0, 1), which);
    else if (which === 'unset') this.#stopLawless('the session was not set');
    else this.cut(which);
  }

  longestSince(): number | undefined {
    return this.#running()[0]?.sentAt;
  }

  #holderMaySend(): void {
    this.#setReady();
    this.#ready = undefined;
    this.#deadlines.opened();
  }

  #sideClosed(side: 'holder' | 'provider', code: number): void {
    if (this.closing.sideClosed(side, code)) void this.#finish().finally(this.#resolveOver);
  }

  async #finish(): Promise<void> {
    this.#isOver = true;
    this.#holderMaySend();
    this.#flow.stop();
    this.#deadlines.stop();
    this.#unwatch();
    for (const turn of this.#turns.values()) this.#track(this.#break(turn, 'failure'));
    await this.#endings.over();
  }

  /** Takes a message of the holder. The next one waits for it. */
  take(frame: Buffer, isBinary: boolean): Promise<void> {
    const taking = (this.#ready ?? NOW)
      .then(() => this.#oneByOne(() => this.#takeNext(frame, isBinary)))
      .catch((error: Error) => this.#failedHere(error));
    // A stopping gateway waits for a running admission.
    this.#deps.underWay.track(taking);
    return taking;
  }

  passes(frame: Buffer): boolean {
    const { dialect, upstream } = this.#own;
    if (this.#ready || this.#inLine > 0 || upstream.readyState !== WebSocket.OPEN) return false;
    return dialect.isPlain?.(frame) === true;
  }

  /** Events of the holder and due turns are started one after another, so that a lane never gets two turns. */
  #oneByOne(work: () => Promise<void>): Promise<void> {
    this.#inLine++;
    const after = this.#inOrder.then(work).finally(() => this.#inLine--);
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

  /** Starts the due turn, if there is one. */
  #beginDue(): void {
    const { dialect } = this.#own;
    if (!dialect.due || this.#isOver) return;
    const beginning = this.#oneByOne(async () => {
      if (this.#isOver || this.#holderLeft || this.closing.end) return;
      const create = dialect.due?.((lane) => this.#turns.has(lane));
      if (create) await this.#begin(create, create.body.length);
    });
    this.#deps.underWay.track(beginning.catch((error: Error) => this.#failedHere(error)));
  }

  async #begin(create: Create, frameBytes: number): Promise<void> {
    const early = this.#earlyRefusal(create.lane);
    if (early) return this.#refuseUnread(early, create.label);
    const begun = await beginTurn(this.#deps, this.#of, this.turns + 1, create, frameBytes);
    if ('refusal' in begun) return this.#refused(begun.refusal, begun.requestId, create.label);
    this.turns++;
    const { turn } = begun;
    const isOpen = this.#own.upstream.readyState === WebSocket.OPEN && !this.#holderLeft;
    if (!isOpen || this.closing.end) {
      const refusal = await turn.unsent(this.closing.end?.refusal, this.closing.unsentBy());
      if (refusal) this.#say(refusal, turn.requestId, turn.label);
      return;
    }
    for (const other of this.#running()) turn.isAlone = other.isAlone = false;
    this.#turns.set(turn.lane, turn);
    turn.sent();
    await this.#flow.toUpstream(begun.frame);
  }

  #earlyRefusal(lane: string): Refusal | undefined {
    if (this.closing.end) return this.closing.end.refusal;
    if (this.#turns.has(lane)) return this.#own.dialect.busy;
    return tooMany(this.#turns.size);
  }

  /** Refuses an event that did not become a turn. It counts as a refused call of its URL. */
  #refuseUnread(refusal: Refusal, label: string): void {
    if (this.#isOver || this.#holderLeft) return;
    const { policy } = this.#own;
    this.#refused(refusal, reportRefused(this.#deps, this.#of, policy, refusal), label);
  }

  #refused(refusal: Refusal, requestId: string, label: string): void {
    this.#say(refusal, requestId, label);
    const end = endAfter(refusal);
    if (end) this.endWith(end);
  }

  #say(refusal: Refusal, requestId: string, label: string): void {
    this.#flow.toHolder(Buffer.from(this.#own.dialect.errorEvent(refusal, requestId, label)));
  }

  hear(frame: Buffer): void {
    this.#safely(() => this.#hear(frame));
  }

  /** Takes an event of the upstream. The last one of a turn waits for the turn to be settled. */
  #hear(frame: Buffer): void {
    const running = this.#running();
    // It answers an event that cost no use. The answer may be much longer than the event.
    if (running.length === 0 || !isOfResponse(frame)) this.#flow.draw('upstream', frame.length);
    const heard = this.#own.dialect.hear(frame, running);
    const shown = 'shown' in heard && heard.shown ? heard.shown : frame;
    const masked = this.#own.secrets.mask(shown);
    const ending = noteHeard(heard, frame);
    if (!ending) {
      this.#flow.toHolder(masked);
      this.#act(heard);
      return;
    }
    // Its bill is unknown, so nothing more is sent.
    if (heard.is === 'failed') {
      this.closing.end ??= UNCLEAR;
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
    else if (heard.is === 'ready') this.#holderMaySend();
    else if (heard.is === 'due') this.#beginDue();
    else if (heard.is === 'lawless') this.#stopLawless(heard.why, heard.unasked);
  }

  /** Stops an API that starts work without admission. */
  #stopLawless(why: string, unasked?: Unasked): void {
    if (unasked && !this.#strays.isNew(unasked)) return;
    if (unasked) this.#track(chargeUnasked(this.#deps, this.#of, ++this.turns, unasked.most()));
    const { id, provider } = this.#of.grant;
    const of = { connection: this.#own.requestId, grant: id, provider: provider.id };
    this.#deps.log.error({ ...of, why }, 'a socket was cut');
    this.cut('failure');
    this.#holderMaySend();
  }

  /** An error that is about no one turn leaves it open what is billed, and so does a turn that takes too long. */
  #breakAll(turns = this.#running(), why: Why = 'failure'): void {
    if (turns.length > 0) this.closing.end ??= UNCLEAR;
    for (const turn of turns) this.#track(this.#break(turn, why).then(() => this.#closeIfIdle()));
  }

  /** A fault of this gateway. Each running turn is charged its hold. */
  #failedHere(error: Error): void {
    // Only the error's name is logged: a message may quote a secret.
    this.#deps.log.error({ connection: this.#own.requestId, error: error.name }, 'a socket was cut');
    this.cut('failure');
  }

  #running(): Turn[] {
    return this.#turns.size === 0 ? [] : [...this.#turns.values()].filter(({ isEnding }) => !isEnding);
  }

  async #break(turn: Turn, why: Why): Promise<void> {
    if (turn.isEnding) return;
    this.#strays.turnOver(turn);
    const refusal = (await turn.broken(why)) ?? endRefusal({ is: 'unanswered', why });
    this.#turns.delete(turn.lane);
    if (refusal) this.#say(refusal, turn.requestId, turn.label);
  }

  /** The upstream stays open for the running turns, because it states their usage at their end. */
  #left(code: number): void {
    this.#holderLeft = true;
    this.#deadlines.left();
    this.#flow.drop();
    if (this.#turns.size === 0) closeWith(this.#own.upstream, code);
    this.#sideClosed('holder', code);
  }

  async #upstreamClosed(code: number, reason: Buffer): Promise<void> {
    for (const turn of this.#running()) this.#track(this.#break(turn, 'failure'));
    this.#sideClosed('provider', code);
    await this.#endings.over();
    if (this.closing.end) return this.#close();
    const text = this.#own.secrets.mask(reason).toString();
    closeWith(this.#own.holder, code, text);
  }

  #closeIfIdle(): void {
    if (this.#turns.size > 0 || this.#isOver) return;
    if (this.closing.end) this.#close();
    else if (this.#holderLeft) closeWith(this.#own.upstream, 1000);
  }

  /** Closes both sides. The holder's side first gets the bytes that were already written. */
  #close(): void {
    const { holder, upstream } = this.#own;
    if (this.closing.end?.isStated) this.#say(this.closing.end.refusal, this.#own.requestId, '');
    const end = this.closing.closes();
    if (end) closeWith(holder, end.code, end.refusal.code);
    closeWith(upstream, 1000);
  }

  #track(ending: Promise<void>): void {
    this.#endings.add(ending.catch((error: Error) => this.#failedHere(error)));
  }
}

const NOW = Promise.resolve();
