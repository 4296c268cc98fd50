import {
  COSTLY_BETAS,
  HARMLESS_BETAS,
  HARMLESS_BETAS_OF_CLAUDE_CODE,
  HARMLESS_BETAS_OF_CLIENTS,
} from '../facts/anthropic.ts';
import { BETA_HEADERS, COSTLY_BETAS_OF_OPENAI, HARMLESS_BETAS_OF_OPENAI } from '../facts/calls.ts';
import { isJsonObject, type JsonObject } from '../json.ts';
import type { CallHeaders, Unbounded } from '../spend.ts';
import { BETA_NAME } from '../usage/names.ts';

/** Finds the first beta that may change a price, or that no list has, in the headers of a call and in its body. */
export type BetaRules = {
  readonly inHeaders: (headers: CallHeaders) => Unbounded | undefined;
  readonly inBody: (body: JsonObject) => Unbounded | undefined;
};

const HARMLESS = [
  ...[HARMLESS_BETAS, HARMLESS_BETAS_OF_CLAUDE_CODE, HARMLESS_BETAS_OF_CLIENTS],
  HARMLESS_BETAS_OF_OPENAI,
];
const COSTLY: ReadonlySet<string> = new Set(
  [COSTLY_BETAS, COSTLY_BETAS_OF_OPENAI].flatMap(({ names }) => names),
);

/** Whether this version knows that a beta changes a price, or lets a call do what nothing in it bounds. */
export const isCostlyBeta = (name: string): boolean => COSTLY.has(name);

/**
 * The rules of betas, common to all dialects. A beta passes if everything that it allows is known, because each field is judged. Any other
 * beta could add unbounded work, and dropping it would change what the holder asked for.
 * @param at the field of a body that lists betas
 */
export function betaRules(
  at: readonly string[] | undefined,
  { harmless, refused }: { readonly harmless: readonly string[]; readonly refused: readonly string[] },
): BetaRules {
  const passing = new Set([...HARMLESS.flatMap(({ names }) => names), ...harmless]);
  for (const name of refused) passing.delete(name);
  const closed = new Set(refused);
  const judge = (place: string, beta: unknown): Unbounded | undefined => {
    if (typeof beta === 'string' && passing.has(beta)) return undefined;
    const isNamed = typeof beta === 'string' && BETA_NAME.test(beta);
    if (!isNamed) return { param: place, reason: 'has a beta whose name cannot be read' };
    return closed.has(beta) || COSTLY.has(beta)
      ? { param: place, beta, reason: `the beta ${beta} may change the price, or allow what has no bound` }
      : { param: place, beta, reason: `the beta ${beta} is not known`, isUnknown: true };
  };
  return {
    inHeaders: (headers) => {
      for (const name of BETA_HEADERS.names) {
        const refusal = headers[name] && firstOf(valuesIn(headers[name]), (beta) => judge(name, beta));
        if (refusal) return refusal;
      }
      return undefined;
    },
    inBody: (body) => {
      const asked = at?.reduce<unknown>(
        (value, step) => (isJsonObject(value) ? value[step] : undefined),
        body,
      );
      if (at === undefined || asked === undefined || asked === null) return undefined;
      const place = at.join('.');
      if (!Array.isArray(asked)) return { param: place, reason: 'is not a list' };
      return firstOf(asked, (beta, index) => judge(`${place}[${index}]`, beta));
    },
  };
}

function firstOf(
  values: readonly unknown[],
  judge: (value: unknown, index: number) => Unbounded | undefined,
): Unbounded | undefined {
  for (const [index, value] of values.entries()) {
    const refusal = judge(value, index);
    if (refusal) return refusal;
  }
  return undefined;
}

const valuesIn = (header: string | readonly string[]): string[] =>
  String(header)
    .split(',')
    .map((value) => value.trim())
    .filter((value) => value !== '');
