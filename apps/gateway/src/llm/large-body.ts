import type { Hold } from '@presign/limits';
import type { Encoding, Prices, Provider } from '@presign/providers';
import type { Refusal } from '@presign/schema';
import type { QuotaOwner } from '../share/read-quota.ts';
import type { Need } from './body.ts';
import type { Unplannable } from './hold.ts';
import type { Target } from './match.ts';
import type { Limited } from './plan.ts';

/** Reads large bodies in workers, so that other calls do not wait. */
export type LargeBodies = {
  /**
   * Reads and plans an LLM call. Its bytes are moved to the worker and cannot be read afterwards.
   * @returns the plan, and the prices and the provider of the plan
   */
  readonly plan: (
    grant: QuotaOwner,
    work: PlanWork,
    provider: Provider,
  ) => Promise<(PlanReply & PlannedWith) | { readonly refusal: Refusal }>;
  /**
   * Counts the tokens of an LLM call. Its bytes are moved to the worker.
   * @param plan prices and provider of its plan
   * @returns undefined if they cannot be counted with this plan, or too many bodies are waiting
   */
  readonly count: (grant: QuotaOwner, work: PlanWork, plan: PlannedWith) => Promise<CountReply | undefined>;
  /**
   * Counts texts. Their bytes are moved to the worker.
   * @returns how much counting saves for each (`SavedTokens`). Undefined if too many bodies are waiting
   */
  readonly countTexts: (grant: QuotaOwner, work: TextsWork) => Promise<readonly number[] | undefined>;
};

/** Texts to count: a JSON list of strings. */
export type TextsWork = { readonly bytes: Uint8Array; readonly encoding: Encoding };

/** A call uses one price list and one version of the knowledge from its hold to its settle. */
export type PlannedWith = { readonly prices: Prices; readonly provider: Provider };

/** A call to plan, as data that can be sent to a worker. */
export type PlanWork = {
  readonly bytes: Uint8Array;
  readonly need: Need;
  readonly providerId: string;
  readonly method: string;
  readonly target: Target;
  readonly grantId: string;
  readonly accountId: string;
  /** The source of the grant's rules, as JSON. Undefined: it has none, or the body obeys them already. */
  readonly rulesText: string | undefined;
  readonly limited: Limited;
  readonly now: number;
};

/** The part of a plan that is data. */
export type PlanData = {
  readonly hold: Hold | undefined;
  readonly worstTokens: number | undefined;
  readonly writesBound: boolean;
  readonly inputTokens: number;
  readonly leastInput: number | undefined;
  /** Whether the endpoint's usage is metered. */
  readonly isMetered: boolean;
  readonly model: string | undefined;
  readonly free: boolean;
  readonly streams: boolean;
  readonly echoes: boolean;
  readonly dropsUsageEvent: boolean;
  readonly rewritten: boolean;
  readonly askedTokens: number;
  /** The pieces of the body to send. */
  readonly body: readonly Uint8Array[];
  /** How many of them stand before the output bound. Undefined: it has none. */
  readonly beforeBound: number | undefined;
};

export type PlanReply = { readonly plan: PlanData } | Unplannable;

/** The bound of a counted call. */
export type CountReply = {
  /** The most that its input and fees can cost. Undefined when no budget limits spending. */
  readonly fixedMicrousd: number | undefined;
  readonly inputTokens: number;
  readonly worstTokens: number | undefined;
};
