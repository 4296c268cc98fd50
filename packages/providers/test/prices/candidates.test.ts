import { calcPrice, type MatchLogic } from '@pydantic/genai-prices';
import { describe, expect, test } from 'vitest';
import { candidatesFor } from '../../src/prices/candidates.ts';
import { BUNDLED_LIST, BUNDLED_LITE_LLM } from '../../src/prices/price-list.ts';

const LISTS = [BUNDLED_LIST, BUNDLED_LITE_LLM].flatMap((list) =>
  [...list.providers].map(([vendor, provider]) => [`${list.id} ${vendor}`, provider] as const),
);

/** The texts of a model's clauses. */
const textsOf = (match: MatchLogic): readonly string[] =>
  'or' in match
    ? match.or.flatMap(textsOf)
    : 'and' in match
      ? match.and.flatMap(textsOf)
      : Object.values(match).map(String);

/** Names as callers write them: other case, a date with or without hyphens, something behind them. */
const variantsOf = (name: string): readonly string[] => [
  name,
  name.toUpperCase(),
  name.replaceAll(/(20\d\d)-(\d\d)-(\d\d)/g, '$1$2$3'),
  name.replaceAll(/(20\d\d)(\d\d)(\d\d)/g, '$1-$2-$3'),
  `${name}-20260131`,
  `${name}:free`,
  ` ${name}\u00a0`,
];

/** A list of a thousand models takes milliseconds for each name, so a part of the names stands for all. */
const MOST_NAMES = 300;

describe('a name that is looked up among the candidates alone', () => {
  test.each(LISTS)('is the same model as in the whole list: %s', (_name, provider) => {
    const all = [...new Set(provider.models.flatMap(({ id, match }) => [id, ...textsOf(match)]))];
    const step = Math.ceil(all.length / MOST_NAMES);
    const names = all.filter((_, place) => place % step === 0).flatMap(variantsOf);
    const found = (given: typeof provider, name: string) =>
      calcPrice({}, name, { provider: given })?.model.id;
    const different = names.filter(
      (name) => found(provider, name) !== found(candidatesFor(provider, name), name),
    );
    expect(different).toEqual([]);
    expect(names.some((name) => found(provider, name) !== undefined)).toBe(true);
  });

  test('has few candidates where a list names its models', () => {
    const provider = BUNDLED_LIST.providers.get('openrouter');
    if (!provider) throw new Error('the list has no openrouter');
    expect(provider.models.length).toBeGreaterThan(500);
    expect(candidatesFor(provider, 'z-ai/glm-4.6').models.length).toBeLessThan(30);
  });
});
