import type { AccountPage, Input, Limits, UsageHours, UsageReport } from '@presign/client';
import { type Query, useQuery } from '@tanstack/preact-query';
import { type Range, rangeBefore } from '../data/format/range.ts';
import { type MovedMost, readMoved } from '../data/moved.ts';
import { refusedIn } from '../data/refusals.ts';
import {
  apiFilters,
  type Dimension,
  questionOf,
  readByDay,
  readReport,
  type UsageAsked,
  type UsageFilters,
} from '../data/usage.ts';
import { isGone, isSignedOut, issuerTime, isUnavailable, presign } from './api.ts';
import { type Cursor, usePages, useWhole } from './pages.ts';
import { LIMITS, setSession } from './session.ts';

/** One hook for each kind of figure: two pages that show the same one read the same answer. */

/** The session's API key and what it may do. Null: there is no session. */
export const useLimits = () =>
  useQuery<Limits | null>({
    queryKey: LIMITS,
    queryFn: async ({ client }) => {
      const limits = await presign.getLimits().catch((error: unknown) => {
        if (isSignedOut(error)) return null;
        throw error;
      });
      setSession(client, limits);
      return limits;
    },
    // Another tab may have signed in with another key.
    refetchOnWindowFocus: 'always',
  });

/** The interval at which live figures are refreshed. */
export const LIVE_MS = 5_000;

/** The interval at which reports refresh. Until then, all pages sum the same calls. */
export const REPORT_MS = 30_000;

/** The end of all reports, in Unix seconds: the same moment for all pages, whatever range they show. */
export const useNow = (): number =>
  useQuery({
    queryKey: ['report-end'],
    queryFn: issuerTime,
    initialData: issuerTime,
    refetchInterval: REPORT_MS,
  }).data;

/** While a report refreshes, the previous answer to the same query stays. The rows of another query have other names. */
const lastOf =
  <T>(asked: object) =>
  (report: T | undefined, query: Pick<Query, 'queryKey'> | undefined): T | undefined =>
    JSON.stringify(query?.queryKey[1]) === JSON.stringify(asked) ? report : undefined;

let turn: Promise<unknown> = Promise.resolve();

/**
 * Reads one report after another, because an issuer runs one at a time for an account and refuses reports that wait too long. A report is
 * not read if the user has left its page.
 */
export function inTurn<T>(signal: AbortSignal, read: () => Promise<T>): Promise<T> {
  const own = turn.then(() => {
    signal.throwIfAborted();
    return read();
  });
  turn = own.catch(() => undefined);
  return own;
}

export function useUsage(asked: UsageAsked, enabled = true) {
  const key = questionOf(asked);
  return useQuery<UsageReport>({
    enabled,
    queryKey: ['usage', key, asked.range.from, asked.range.to],
    queryFn: ({ signal }) => inTurn(signal, () => readReport(presign.getUsage, asked)),
    placeholderData: lastOf(key),
  });
}

/** The sums of each day by one dimension, for a chart. */
export function useByDay(asked: { range: Range; by: Dimension; filters?: UsageFilters }, enabled = true) {
  const { by, ...which } = asked;
  const key = questionOf(asked);
  const isOfDays = by === 'day';
  // A page that shows the groups as well reads the same answer.
  const groups = useUsage({ ...which, groupBy: isOfDays ? [] : [by] }, enabled && !isOfDays);
  const known = groups.isPlaceholderData ? undefined : groups.data;
  const daily = useQuery<UsageReport>({
    queryKey: ['by-day', key, asked.range.from, asked.range.to],
    queryFn: ({ signal }) =>
      inTurn(signal, () => readByDay(presign.getUsage, asked, isOfDays ? undefined : known)),
    placeholderData: lastOf(key),
    enabled: enabled && (isOfDays || known !== undefined),
  });
  return { data: daily.data, error: daily.error ?? groups.error };
}

/** The customers whose spending differs most from the time before. */
export function useMoved(range: Range, most: number) {
  const key = questionOf({ range });
  const now = useUsage({ range, groupBy: ['external_user'] });
  const before = useUsage({ range: rangeBefore(range), groupBy: ['external_user'] });
  const isRead = now.data && before.data && !now.isPlaceholderData && !before.isPlaceholderData;
  const moved = useQuery<MovedMost>({
    queryKey: ['moved', key, range.from, range.to],
    queryFn: ({ signal }) =>
      readMoved((fields) => inTurn(signal, () => presign.getUsage(fields)), {
        now: { range, report: now.data as UsageReport },
        before: { range: rangeBefore(range), report: before.data as UsageReport },
        most,
      }),
    placeholderData: lastOf(key),
    enabled: isRead === true,
  });
  return { data: moved.data, error: moved.error ?? now.error ?? before.error };
}

/** The longest range for which hours are read. The API reads whole hours. */
const MOST_HOURS = 31 * 24;
export const HOUR = 3_600;

/** How the calls of each hour ended, and how long they took. Filters can be a provider, a model or a server. */
export const useHours = (range: Range, filters: Filters = {}) => {
  const { from, to } = range;
  const key = questionOf({ range, filters });
  const end = Math.ceil(to / HOUR) * HOUR;
  const start = Math.max(Math.floor(from / HOUR) * HOUR, end - MOST_HOURS * HOUR);
  return useQuery<UsageHours>({
    queryKey: ['hours', key, start, end],
    queryFn: () => presign.getUsageHours({ ...filters, from: start, to: end }),
    refetchInterval: REPORT_MS,
    placeholderData: lastOf(key),
  });
};

/** The most days for which the API counts refusals. */
const REFUSAL_DAYS = 90;

/** The refused calls of a range by day and code. */
export function useRefused({ isLive, ...range }: Range & { readonly isLive: boolean }) {
  const { data, error } = useQuery({
    queryKey: ['refusals'],
    queryFn: () => presign.getRefusals({ days: REFUSAL_DAYS }),
    refetchInterval: LIVE_MS,
  });
  return { data: data && refusedIn(data, range, isLive), error };
}

/** The filters of a list, in the form of the page's address. */
export type Filters = Readonly<Record<string, string>>;

const listBudgets = (filters: Filters) => (at: Cursor) => presign.listBudgets({ ...filters, ...at });

/** The budgets with their live figures. */
export const useBudgets = (filters: Filters = {}) =>
  useWhole(['budgets', filters], listBudgets(filters), LIVE_MS);

/** The budgets, for a choice. */
export const useBudgetList = () => useWhole(['budgets', {}], listBudgets({}), undefined);

export const useBudget = (id: string) =>
  useQuery({ queryKey: ['budget', id], queryFn: () => presign.getBudget({ id }), refetchInterval: LIVE_MS });

/** URLs with their live figures, newest first. The API has some of the filters, so a page may contain URLs that do not match the others. */
export const useUrls = ({ external_user, external_session, session_id, api_key, state: status }: Filters) => {
  const filters = { external_user, external_session, session_id, api_key, status };
  return usePages(
    ['urls', filters],
    (at) => presign.listGrants({ ...filters, ...at } as Input<'listGrants'>),
    REPORT_MS,
  );
};

/** One URL with its live figures. */
export const useUrl = (id: string) =>
  useQuery({ queryKey: ['url', id], queryFn: () => presign.getGrant({ id }), refetchInterval: LIVE_MS });

/** A session with its URLs and their live figures. */
export const useSession = (id: string) =>
  usePages(['session', id], (at) => presign.getSession({ id, ...at }), LIVE_MS);

/** The numbers of newest calls, and of their sessions, for which live figures are read. */
const RECENT_CALLS = 100;
const RECENT_SESSIONS = 10;

/** The sessions of the newest calls, with their newest URLs. Two indexed reads, however many URLs there are. */
export const useRecentSessions = () =>
  useQuery({
    queryKey: ['recent-sessions'],
    queryFn: async () => {
      const { data } = await presign.listCalls({ limit: RECENT_CALLS });
      const ids = [...new Set(data.map((call) => call.session_id))].slice(0, RECENT_SESSIONS);
      // Retention may have deleted a session whose calls are still in the ledger.
      const read = ids.map((id) => presign.getSession({ id, limit: 50 }).catch(nullIfGone));
      return (await Promise.all(read)).filter((session) => session !== null);
    },
    refetchInterval: REPORT_MS,
  });

function nullIfGone(error: unknown): null {
  if (isGone(error)) return null;
  throw error;
}

/** Calls within a range, newest first. Refused calls are included unless the filters exclude them. The first page refreshes. */
export const useCalls = (filters: Filters, range: Range | undefined, isLive: boolean) =>
  usePages(
    ['calls', filters, range && (isLive ? range.from : range)],
    (at) =>
      presign.listCalls({
        ...{ outcome: 'all', ...apiFilters(filters), ...at },
        ...(range && { from: range.from, ...(!isLive && { to: range.to }) }),
        format: 'json',
      } as Input<'listCalls'> & { format: 'json' }),
    isLive ? LIVE_MS : undefined,
  );

/** Calls similar to a given one, including refused ones. */
export const useSimilar = (requestId: string) =>
  useQuery({
    queryKey: ['similar', requestId],
    queryFn: () => presign.listSimilarCalls({ request_id: requestId }),
  });

/** How often the page of a call is requested again: a call that has just ended appears a moment later. */
const MOST_LOOKS = 10;
const LOOK_MS = 1_000;

export const useCall = (requestId: string) =>
  useQuery({
    queryKey: ['call', requestId],
    queryFn: () => presign.getCall({ request_id: requestId }),
    refetchInterval: ({ state }) =>
      isGone(state.error) && state.errorUpdateCount < MOST_LOOKS ? LOOK_MS : false,
  });

const listVirtualKeys = (at: Cursor) => presign.listVirtualKeys(at);

/** The virtual keys, for a choice. */
export const useVirtualKeyList = (enabled: boolean) =>
  useWhole(['virtual-key-list'], listVirtualKeys, undefined, enabled);

/** The virtual keys with their live figures. */
export const useVirtualKeyFigures = () => useWhole(['virtual-key-list'], listVirtualKeys, LIVE_MS);

/** The models of a provider that have a price. An empty name: of all providers. */
export const useModels = (provider: string, enabled: boolean) =>
  useQuery({
    queryKey: ['models', provider],
    queryFn: async () => (await presign.listModels(provider === '' ? {} : { provider })).data,
    staleTime: REPORT_MS,
    enabled,
  });

export const useAlerts = () => usePages(['alerts'], (at) => presign.listAlerts(at), LIVE_MS);

export const useAlert = (id: string) =>
  useQuery({ queryKey: ['alert', id], queryFn: () => presign.getAlert({ id }), refetchInterval: LIVE_MS });

export const useFirings = (id: string) =>
  usePages(['firings', id], (at) => presign.listFirings({ id, ...at }), LIVE_MS);

/** All accounts of the service with their usage, for its operator. If Postgres cannot sum the usage in time, the list comes without it. */
export const useAccounts = () =>
  usePages(
    ['accounts'],
    (at): Promise<AccountPage> =>
      presign.listAccounts({ ...at, include: 'usage' }, { maxRetries: 0 }).catch((error: unknown) => {
        if (isUnavailable(error)) return presign.listAccounts(at);
        throw error;
      }),
    REPORT_MS,
  );
