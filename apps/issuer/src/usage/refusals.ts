import { readRefusals } from '@presign/limits';
import { homePartition, refusalsAnswer, refusalsQuery } from '@presign/schema';
import { inTime } from '../in-time.ts';
import { route } from '../route.ts';

const DAY_MS = 86_400_000;

/** `GET /v1/refusals`: how many calls of the account the gateways refused, by day and code. */
export const getRefusals = route(
  {
    method: 'get',
    path: '/v1/refusals',
    summary: 'Count refused calls by day and code',
    description:
      'Refused calls cost nothing and are not in the ledger. The counts are approximate: gateways add them up, and lose those of the last second when they are killed. Calls with a token that is not valid have no account, and are not counted.',
    scope: 'read',
    query: refusalsQuery,
    answer: refusalsAnswer,
  },
  ({ redis, now }) =>
    async ({ apiKey: { accountId }, query: { days } }) => {
      const names = Array.from({ length: days }, (_, i) => dayOf(now() - (days - 1 - i) * DAY_MS));
      const reading = readRefusals(redis, homePartition(accountId), accountId, names);
      const found = await inTime(reading).catch(() => null);
      const data = found?.flatMap(({ day, calls }) =>
        Array.from(calls, ([code, count]) => ({ day, code, calls: count })).sort((a, b) =>
          a.code < b.code ? -1 : 1,
        ),
      );
      return { from: names[0] ?? '', to: names.at(-1) ?? '', data: data ?? null };
    },
);

const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
