import { expect } from 'vitest';
import type { Stack } from '../harness/stack.ts';

type Limits = { readonly cost_limit?: number; readonly max_uses?: number };
type Figures = { readonly used: number; readonly spent: number; readonly held: number };

/** A URL whose limits change, and the most that its figures may be at each moment. */
export class Books {
  readonly #stack: Stack;
  readonly #path: string;
  #mostCost: number;
  #mostUses: number;
  #isRevoked = false;

  constructor(stack: Stack, grantId: string, { cost_limit, max_uses }: Required<Limits>) {
    this.#stack = stack;
    this.#path = `/v1/grants/${grantId}`;
    this.#mostCost = cost_limit;
    this.#mostUses = max_uses;
  }

  /** Its figures in one answer: a turn may end between two. */
  async figures(): Promise<Figures> {
    const answer = await this.#ask('GET');
    return ((await answer.json()) as { live: Figures }).live;
  }

  /**
   * Checks that what is spent and held is at most the limit, and that it covers what the provider has billed.
   * @param billed by the provider's own books, read before the figures
   */
  async check(billed: number): Promise<Figures> {
    const figures = await this.figures();
    const { used, spent, held } = figures;
    expect(spent + held).toBeLessThanOrEqual(this.#mostCost);
    expect(spent + held).toBeGreaterThanOrEqual(billed);
    expect(used).toBeLessThanOrEqual(this.#mostUses);
    return figures;
  }

  /** Changes its limits. A limit below what is spent and held lets nothing be added from then on. */
  async change(change: Limits, billed: () => number): Promise<void> {
    if (this.#isRevoked) return;
    const { cost_limit: cost = this.#mostCost, max_uses: uses = this.#mostUses } = change;
    this.#mostCost = Math.max(this.#mostCost, cost);
    this.#mostUses = Math.max(this.#mostUses, uses);
    const { status } = await this.#ask('PATCH', change);
    expect(status).toBe(200);
    const { used, spent, held } = await this.check(billed());
    if (change.cost_limit !== undefined) this.#mostCost = Math.max(cost, spent + held);
    if (change.max_uses !== undefined) this.#mostUses = Math.max(uses, used);
  }

  /** Changes its limit so that this much money is left. */
  async leaveMoney(money: number, billed: () => number): Promise<void> {
    const { spent, held } = await this.figures();
    await this.change({ cost_limit: spent + held + money }, billed);
  }

  /** Revokes it. No use is added from then on. */
  async revoke(billed: () => number): Promise<void> {
    if (this.#isRevoked) return;
    this.#isRevoked = true;
    expect((await this.#ask('DELETE')).status).toBe(204);
    const { used, spent, held } = await this.check(billed());
    this.#mostCost = spent + held;
    this.#mostUses = used;
  }

  #ask(method: string, body?: object): Promise<Response> {
    return fetch(`${this.#stack.issuerUrl}${this.#path}`, {
      method,
      headers: { authorization: `Bearer ${this.#stack.apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  }
}
