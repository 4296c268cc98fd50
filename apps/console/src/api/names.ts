import type { Input } from '@presign/client';
import { keepPreviousData, queryOptions, useQuery } from '@tanstack/preact-query';
import { useEffect, useState } from 'preact/hooks';
import type { NamedKey } from '../data/format/named-key.ts';
import { nameOf } from '../data/shared-budget.ts';
import { type Dimension, readReport, valueIn } from '../data/usage.ts';
import { issuerTime, presign } from './api.ts';
import { inTurn, REPORT_MS } from './queries.ts';
import { readAll } from './read-all.ts';

/** The names of the newest API keys, virtual keys and budgets by their ids: 1,000 of each. */
export const namesOf = (isAdmin: boolean) =>
  queryOptions({
    queryKey: ['names', isAdmin],
    staleTime: REPORT_MS,
    queryFn: async (): Promise<Names> => {
      const [keys, virtual, budgets] = await Promise.all([
        isAdmin ? readAll((at) => presign.listApiKeys(at)) : { rows: [] },
        readAll((at) => presign.listVirtualKeys(at)),
        readAll((at) => presign.listBudgets(at)),
      ]);
      return {
        api_key: new Map(keys.rows.map(({ id, name }) => [id, name])),
        virtual_key: new Map(virtual.rows.map(({ id, name }) => [id, name])),
        budget: new Map(budgets.rows.map((budget) => [budget.id, nameOf(budget)])),
        keys: { api_key: keys.rows, virtual_key: virtual.rows },
      };
    },
  });

export const useNames = (isAdmin: boolean, enabled = true) => useQuery({ ...namesOf(isAdmin), enabled });

export type Names = Readonly<Record<'api_key' | 'virtual_key' | 'budget', ReadonlyMap<string, string>>> & {
  /** Keys with their names, and whether they are revoked. */
  readonly keys: Readonly<Record<'api_key' | 'virtual_key', readonly NamedKey[]>>;
};

const SUGGESTED_SECONDS = 90 * 86_400;

/** The values of a dimension with the highest cost in the last months, sorted by the number of their calls. */
export const useValues = (by: Dimension, enabled = true) =>
  useQuery({
    queryKey: ['values', by],
    enabled,
    staleTime: REPORT_MS,
    queryFn: ({ signal }) =>
      inTurn(signal, async () => {
        const to = issuerTime();
        const range = { from: to - SUGGESTED_SECONDS, to, zone: 'UTC' };
        const { data } = await readReport(presign.getUsage, { range, groupBy: [by] });
        return data
          .sort((a, b) => b.calls - a.calls)
          .map((row) => valueIn(row, by))
          .filter((value) => value !== null);
      }),
  });

/** How long after the last key press a search starts. */
const TYPED_MS = 200;

/**
 * Users and sessions whose names contain a text, in any case. Until the answer arrives, the matches in the previous answer.
 * `isWhole`: there are no others.
 */
export function useFound(text: string, enabled: boolean, kind?: Input<'search'>['kind']) {
  const [contains, setContains] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setContains(text), TYPED_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const isAsked = enabled && contains !== '';
  const { data, error, isPending, isPlaceholderData } = useQuery({
    queryKey: ['search', kind, contains],
    enabled: isAsked,
    staleTime: REPORT_MS,
    placeholderData: keepPreviousData,
    queryFn: () => presign.search({ contains, ...(kind && { kind }) }),
  });
  const fits = text.toLowerCase();
  const isShown = enabled && text !== '';
  return {
    found: isShown ? (data?.data ?? []).filter(({ name }) => name.toLowerCase().includes(fits)) : [],
    isWaiting: isShown && (text !== contains || isPending || isPlaceholderData),
    isWhole: !isShown || data?.complete !== false,
    error: isShown ? error : null,
  };
}

/** Suggested users: first those whose names contain the typed text, then those with the most calls. */
export function useUsers(typed: string, enabled = true): readonly string[] {
  const { data: usual = [] } = useValues('external_user', enabled);
  const { found } = useFound(typed.trim(), enabled, 'external_user');
  return [...new Set([...found.map(({ name }) => name), ...usual])];
}
