import type { Input, Limits, UsageReport } from '@presign/client';
import { keepPreviousData, type Query, useInfiniteQuery, useQuery } from '@tanstack/preact-query';
import { isGone, isSignedOut, issuerTime, presign } from './api.ts';
import { moment } from './format.ts';
import { type Dimension, readByDay, readReport, type UsageAsked, type UsageFilters } from './usage.ts';

/** One hook for each kind of figure: two pages that show the same one read the same answer. */

/** The session's API key and what it may do. Null: there is no session. */
export const useLimits = () =>
  useQuery<Limits | null>({
    queryKey: ['limits'],
    queryFn: () =>
      presign.getLimits().catch((error: unknown) => {
        if (isSignedOut(error)) return null;
        throw error;
      }),
  });

/** Live figures are asked for again after this time. */
const LIVE_MS = 5_000;

/** How often reports move on. Until then, all pages sum the same calls. */
const REPORT_MS = 30_000;

/** The end of all reports, in Unix seconds: one moment for all pages. */
export const useReportEnd = () =>
  useQuery({ queryKey: ['report-end'], queryFn: issuerTime, refetchInterval: REPORT_MS });

/** While a report moves on, the last one of the same question stays. The rows of another question have other names. */
const lastOf =
  (asked: object) =>
  (report: UsageReport | undefined, query: Pick<Query, 'queryKey'> | undefined): UsageReport | undefined =>
    JSON.stringify(query?.queryKey[1]) === JSON.stringify(asked) ? report : undefined;

export function useUsage(asked: UsageAsked) {
  const { data: end } = useReportEnd();
  return useQuery({
    queryKey: ['usage', asked, end],
    queryFn: () => readReport(presign.getUsage, asked, end ?? 0),
    enabled: end !== undefined,
    placeholderData: lastOf(asked),
  });
}

/** The spending of each day by one dimension, for a chart. */
export function useSpendByDay(asked: { days: number; by: Dimension; filters?: UsageFilters }) {
  const { data: end } = useReportEnd();
  return useQuery({
    queryKey: ['spend-by-day', asked, end],
    queryFn: () => readByDay(presign.getUsage, asked, end ?? 0),
    enabled: end !== undefined,
    placeholderData: lastOf(asked),
  });
}

/** The days that refusals are kept for. */
const REFUSAL_DAYS = 90;

/** Refused calls by day and code. */
export const useRefusals = (days: number) =>
  useQuery({
    queryKey: ['refusals', days],
    queryFn: () => presign.getRefusals({ days: Math.min(days, REFUSAL_DAYS) }),
    refetchInterval: LIVE_MS,
    placeholderData: keepPreviousData,
  });

type Page = { readonly next_cursor: string | null };
type Cursor = { readonly cursor?: string; readonly limit: number };

/** A list, page by page. */
const usePages = <P extends Page>(
  key: readonly unknown[],
  ask: (at: Cursor) => Promise<P>,
  everyMs?: number,
) =>
  useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam }) => ask(pageParam === null ? { limit: 50 } : { limit: 50, cursor: pageParam }),
    initialPageParam: null as string | null,
    getNextPageParam: (last) => last.next_cursor,
    placeholderData: keepPreviousData,
    refetchInterval: everyMs ?? false,
  });

/** Filters of a list, as the address of the page has them. */
export type Filters = Readonly<Record<string, string>>;

export const useBudgets = (filters: Filters = {}) =>
  usePages(['budgets', filters], (at) => presign.listBudgets({ ...filters, ...at }), LIVE_MS);

export const useSessions = (filters: Filters) =>
  usePages(['sessions', filters], (at) =>
    presign.listSessions({ ...filters, ...at } as Input<'listSessions'>),
  );

/** A session with its URLs and their live figures. */
export const useSession = (id: string) =>
  usePages(['session', id], (at) => presign.getSession({ id, ...at }), LIVE_MS);

/** The newest calls and the sessions of them whose live figures are read. */
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

export const useCalls = (filters: Filters) =>
  usePages(['calls', filters], (at) => {
    const { from, to, ...others } = filters;
    const times = { ...(from && { from: moment(from) }), ...(to && { to: moment(to) }) };
    return presign.listCalls({ ...others, ...times, ...at, format: 'json' } as Input<'listCalls'> & {
      format: 'json';
    });
  });

/** A call that has just ended appears a moment later: its page is asked for again, so often. */
const MOST_LOOKS = 10;
const LOOK_MS = 1_000;

export const useCall = (requestId: string) =>
  useQuery({
    queryKey: ['call', requestId],
    queryFn: () => presign.getCall({ request_id: requestId }),
    refetchInterval: ({ state }) =>
      isGone(state.error) && state.errorUpdateCount < MOST_LOOKS ? LOOK_MS : false,
  });

export const useApiKeys = (enabled: boolean) =>
  useInfiniteQuery({
    queryKey: ['api-keys'],
    queryFn: ({ pageParam }) => presign.listApiKeys({ limit: 50, ...(pageParam && { cursor: pageParam }) }),
    initialPageParam: '',
    getNextPageParam: (last) => last.next_cursor,
    enabled,
  });

export const useVirtualKeys = () => usePages(['virtual-keys'], (at) => presign.listVirtualKeys(at), LIVE_MS);

export const useWebhooks = () => usePages(['webhooks'], (at) => presign.listWebhooks(at));

export const useDeliveries = (id: string) =>
  usePages(['deliveries', id], (at) => presign.listDeliveries({ id, ...at }), LIVE_MS);

export const useAudit = (filters: Filters) =>
  usePages(['audit', filters], (at) =>
    presign.listAudit({ ...filters, ...at, format: 'json' } as Input<'listAudit'> & { format: 'json' }),
  );
