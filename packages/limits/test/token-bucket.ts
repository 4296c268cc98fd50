import { expect } from 'vitest';
import { admit, expire, type GrantRef, keys, type RedisClient, renew, settle } from '../src/index.ts';
import { newAsk, newOutcome } from './grant.ts';

export const PARTS = 60_000;

/** The clock of one bucket: it moves by moving what Redis has noted. */
export class TokenClock {
  readonly #redis: RedisClient;
  readonly #ref: GrantRef;
  /** How far it was moved, in ms: a noted time plus this is a time of the model. */
  movedMs = 0;

  constructor(redis: RedisClient, ref: GrantRef) {
    this.#redis = redis;
    this.#ref = ref;
  }

  get #budget(): string {
    return keys.budget(this.#ref.partition, this.#ref.budgetIds[0] ?? '');
  }

  async wait(ms: number): Promise<void> {
    this.movedMs += ms;
    if (await this.#redis.hexists(this.#budget, 'token_at'))
      await this.#redis.hincrby(this.#budget, 'token_at', -ms);
    for (const id of await this.#redis.zrange(keys.leases(this.#ref.partition), '0', '-1')) {
      const hold = keys.hold(this.#ref.partition, id);
      if (await this.#redis.hexists(hold, 'token_since')) await this.#redis.hincrby(hold, 'token_since', -ms);
    }
  }

  /** The level as Redis has noted it, and when. */
  async read(): Promise<{ level: number; at: number } | undefined> {
    const [level, at] = await this.#redis.hmget(this.#budget, 'token_level', 'token_at');
    return level && at ? { level: Number(level), at: Number(at) + this.movedMs } : undefined;
  }

  async now(): Promise<number> {
    const [seconds, micros] = await this.#redis.time();
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000) + this.movedMs;
  }
}

/** One thing that happens; numbers choose a call, or a share of a hundred. */
export type TokenStep =
  | { readonly do: 'admit'; readonly share: number }
  | { readonly do: 'settle'; readonly at: number; readonly share: number | null }
  | { readonly do: 'again' | 'expire'; readonly at: number }
  | { readonly do: 'wait'; readonly ms: number };

/** A call that took tokens. */
type Taken = { readonly holdId: string; readonly worst: number; readonly at: number; used?: number };

/** The bucket as the rules have it, next to that of Redis. */
export class BucketModel {
  readonly #perMinute: number;
  readonly #redis: RedisClient;
  readonly #ref: GrantRef;
  readonly #clock: TokenClock;
  readonly #taken: Taken[] = [];
  readonly #running: Taken[] = [];
  #level: number;
  #at: number | undefined;

  constructor(perMinute: number, redis: RedisClient, ref: GrantRef) {
    this.#perMinute = perMinute;
    this.#redis = redis;
    this.#ref = ref;
    this.#clock = new TokenClock(redis, ref);
    this.#level = perMinute * PARTS;
  }

  async take(step: TokenStep): Promise<void> {
    if (step.do === 'wait') return this.#clock.wait(step.ms);
    if (step.do === 'admit') return this.#admit(Math.ceil((this.#perMinute * step.share) / 100));
    const call = this.#running[step.at % Math.max(1, this.#running.length)];
    if (!call) return;
    if (step.do === 'settle') await this.#settle(call, step.share);
    else if (step.do === 'expire') await this.#expire(call);
    else await admit(this.#redis, this.#ref, newAsk({ holdId: call.holdId, worstTokens: call.worst }));
    await this.#expectExact();
  }

  /** In the time between any two calls no more was used than a full bucket and its gain. */
  expectEveryMinuteWithin(): void {
    for (const [i, first] of this.#taken.entries()) {
      let sum = 0;
      for (const { at, worst, used = worst } of this.#taken.slice(i)) {
        sum += used;
        expect(sum * PARTS).toBeLessThanOrEqual(this.#perMinute * (PARTS + at - first.at));
      }
    }
  }

  async #admit(worst: number): Promise<void> {
    const before = await this.#clock.now();
    const asked = newAsk({ worstTokens: worst });
    const answer = await admit(this.#redis, this.#ref, asked);
    if (worst > this.#perMinute) return expect(answer.is).toBe('token_rate_too_low');
    if (answer.is === 'rate_limited') {
      expect(this.#levelAt(before)).toBeLessThan(worst * PARTS);
      const [least, most] = [await this.#clock.now(), before].map((now) =>
        Math.ceil((worst * PARTS - this.#levelAt(now)) / this.#perMinute),
      );
      expect(answer.waitMs).toBeGreaterThanOrEqual(least ?? 0);
      expect(answer.waitMs).toBeLessThanOrEqual(most ?? 0);
      return;
    }
    expect(answer.is).toBe('admitted');
    if (worst === 0) return;
    const { at } = (await this.#clock.read()) ?? { at: Number.NaN };
    this.#level = this.#levelAt(at) - worst * PARTS;
    this.#at = at;
    expect(this.#level).toBeGreaterThanOrEqual(0);
    const call = { holdId: asked.holdId, worst, at };
    this.#taken.push(call);
    this.#running.push(call);
    await this.#expectExact();
  }

  async #settle(call: Taken, share: number | null): Promise<void> {
    const usedTokens = share === null ? undefined : Math.floor((call.worst * share) / 100);
    await settle(this.#redis, this.#ref, newOutcome(call.holdId, { usedTokens }));
    this.#ended(call);
    if (usedTokens === undefined) return;
    const { at } = (await this.#clock.read()) ?? { at: Number.NaN };
    const gained = (at - call.at) * this.#perMinute;
    const back = Math.max(0, (call.worst - usedTokens) * PARTS - gained);
    this.#level = Math.min(this.#perMinute * PARTS, this.#levelAt(at) + back);
    this.#at = at;
    call.used = usedTokens;
    expect(this.#level).toBeLessThanOrEqual(this.#levelHadAllUsed(at));
  }

  async #expire(call: Taken): Promise<void> {
    await renew(this.#redis, this.#ref.partition, -1_000, [call.holdId]);
    expect(await expire(this.#redis, this.#ref.partition, call.holdId)).toBe(true);
    this.#ended(call);
  }

  #ended(call: Taken): void {
    this.#running.splice(this.#running.indexOf(call), 1);
  }

  async #expectExact(): Promise<void> {
    expect(await this.#clock.read()).toEqual({ level: this.#level, at: this.#at });
  }

  #levelAt(now: number): number {
    const gained = this.#at === undefined ? 0 : (now - this.#at) * this.#perMinute;
    return Math.min(this.#perMinute * PARTS, this.#level + gained);
  }

  /** The level had each call that has said so taken only what it used, when it was admitted. */
  #levelHadAllUsed(now: number): number {
    const full = this.#perMinute * PARTS;
    let [level, last] = [full, now];
    for (const { at, worst, used = worst } of this.#taken) {
      level = Math.min(full, level + Math.max(0, at - last) * this.#perMinute) - used * PARTS;
      last = at;
    }
    return Math.min(full, level + Math.max(0, now - last) * this.#perMinute);
  }
}
