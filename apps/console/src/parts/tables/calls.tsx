import type { Call } from '@presign/client';
import { count, money } from '../../data/format/format.ts';
import { endOf } from '../../data/reasons.ts';
import { Status, User, useName, When } from '../page/facts.tsx';
import { href, hrefOf } from '../page/place.ts';
import type { Column } from './table.tsx';

/** Calls are filtered and summed by their provider, so an MCP call shows the provider and the server. */
export const providerOf = ({ provider, server }: Pick<Call, 'provider' | 'server'>): string =>
  server === null ? provider : `${provider}: ${server}`;

/** How a call ended, in words. */
export const Ended = ({ call }: { call: Call }) => (
  <>{endOf(call, useName('budget', call.refusal?.budget ?? null))}</>
);

export const keyOfCall = (call: Call): string =>
  `${call.request_id} ${call.grant_id} ${call.outcome} ${call.settled_at}`;

/** Says which refused calls a list has. */
export const KeptRefusals = () => (
  <p class="soft">The list has the first ten refused calls of an hour for each URL and code.</p>
);

/** The columns of a list of passed, failed and refused calls. */
export const CALL_COLUMNS: readonly Column<Call>[] = [
  {
    head: 'Time',
    cell: ({ request_id: id, settled_at: at }) =>
      id === null ? (
        <When at={at} />
      ) : (
        <a href={hrefOf('requests', id)}>
          <When at={at} />
        </a>
      ),
    sort: ({ settled_at: at }) => at,
  },
  {
    head: 'Outcome',
    cell: ({ outcome, failure }) => <Status of={outcome === 'passed' ? outcome : (failure ?? outcome)} />,
    sort: ({ outcome, failure }) => failure ?? outcome,
  },
  {
    head: 'User',
    cell: ({ external_user: user }) => <User of={user} />,
    sort: (call) => call.external_user ?? '',
  },
  {
    head: 'Model or tool',
    cell: ({ model, tool }) =>
      model === null && tool === null ? (
        '–'
      ) : (
        <a href={href('requests', model === null ? { tool: tool ?? '' } : { model })}>{model ?? tool}</a>
      ),
    sort: ({ model, tool }) => model ?? tool ?? '',
  },
  { head: 'Provider', cell: providerOf, sort: providerOf },
  {
    head: 'Tokens',
    figure: true,
    cell: ({ input_tokens: input, output_tokens: output }) =>
      input === null ? '–' : `${count(input)} → ${count(output)}`,
    sort: ({ input_tokens: input, output_tokens: output }) => (input ?? 0) + (output ?? 0),
  },
  { head: 'Cost', figure: true, cell: ({ cost }) => money(cost), sort: ({ cost }) => cost ?? -1 },
];

/** The outcome in words. */
export const ENDED: Column<Call> = { head: 'In words', isText: true, cell: (call) => <Ended call={call} /> };

/** The columns of a list of calls that did not pass. The reason is next to the time, where a narrow window shows it. */
export const ENDED_COLUMNS: readonly Column<Call>[] = CALL_COLUMNS.toSpliced(1, 0, ENDED);
