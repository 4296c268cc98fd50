import type { CallWithRefunds } from '@presign/client';
import { count, money, short } from '../data/format.ts';
import { useCall, useRates } from '../data/queries.ts';
import { Answer, Page } from '../parts/answer.tsx';
import { Facts, Status, When } from '../parts/facts.tsx';
import { Table } from '../parts/table.tsx';
import { href } from '../place.ts';

export function CallPage({ id }: { id: string }) {
  return (
    <Page title={`Call ${short(id)}`}>
      <Answer of={useCall(id)}>
        {(call) => (
          <>
            <About call={call} />
            <h2>Price</h2>
            <Price call={call} />
          </>
        )}
      </Answer>
    </Page>
  );
}

const About = ({ call }: { call: CallWithRefunds }) => (
  <Facts
    of={[
      ['Request', <code key="id">{call.request_id}</code>],
      ['Outcome', <Status key="outcome" of={call.failure ?? call.outcome} />],
      ['Status of the provider', call.status ?? '–'],
      ['Started', <When key="started" at={call.started_at} />],
      ['Settled', <When key="settled" at={call.settled_at} />],
      ['Provider', call.server ?? call.provider],
      ['Model or tool', call.model ?? call.tool ?? '–'],
      ['User', call.external_user ?? '–'],
      [
        'Session',
        <a key="session" href={href(`sessions/${call.session_id}`)}>
          {short(call.session_id)}
        </a>,
      ],
      [
        'URL',
        <a key="url" href={href('calls', { grant_id: call.grant_id })}>
          {short(call.grant_id)}
        </a>,
      ],
      [
        'API key',
        call.api_key ? (
          <a key="key" href={href('sessions', { api_key: call.api_key })}>
            {short(call.api_key)}
          </a>
        ) : (
          '–'
        ),
      ],
      ['Uses', count(call.uses)],
      ['Price list', call.price_list ? `${call.price_list.source} ${call.price_list.id}` : '–'],
    ]}
  />
);

type Line = {
  readonly name: string;
  readonly amount: string;
  readonly rate: string;
  readonly microusd: number | null;
};

/** The charge line by line: the tokens at the listed rates, and what was held, charged and given back. */
function Price({ call }: { call: CallWithRefunds }) {
  const rates = useRates(call.provider, call.model).data?.data[0]?.rates;
  const isMcp = call.server !== null || call.tool !== null;
  const lines: Line[] = isMcp
    ? []
    : [
        tokens('Input tokens', call.input_tokens, rates?.input),
        tokens('Output tokens', call.output_tokens, rates?.output),
      ];
  const known = !isMcp && lines.every(({ microusd }) => microusd !== null);
  // The gateway rounds the sum up, once.
  const sum = known ? Math.ceil(lines.reduce((all, { microusd }) => all + (microusd ?? 0), 0) - 1e-9) : null;
  const fixed = (name: string, microusd: number | null) => ({ name, amount: '', rate: '', microusd });
  const rows = [
    ...lines,
    ...(isMcp ? [] : [fixed('At the listed rates, rounded up', sum)]),
    fixed('Held before the call', call.hold),
    fixed('Above the hold', call.overrun),
    ...call.refunds.map(({ cost }, at) =>
      fixed(at === 0 ? 'Given back' : `Given back, ${at + 1}.`, cost === null ? null : -Math.abs(cost)),
    ),
    fixed('Charged', call.cost),
  ];
  return (
    <>
      <Table
        caption="Price of this call"
        rows={rows}
        keyOf={({ name }) => name}
        columns={[
          { head: 'Line', cell: ({ name }) => name },
          { head: 'Amount', figure: true, cell: ({ amount }) => amount },
          { head: 'Rate', figure: true, cell: ({ rate }) => rate },
          { head: 'Dollars', figure: true, cell: ({ microusd }) => exact(microusd) },
        ]}
      />
      {isMcp && (
        <p class="soft">
          A call of an MCP server has one price, which the bundle or the operator sets for its tool.
        </p>
      )}
      {known && call.cost !== null && sum !== call.cost && (
        <p class="soft">
          The charge is another amount than these lines: it can include cached or other tokens and fees, other
          rates at the time, or the whole hold if the usage was not reported.
        </p>
      )}
    </>
  );
}

function tokens(name: string, amount: number | null, rate: number | undefined): Line {
  return {
    name,
    amount: count(amount),
    rate: rate === undefined ? '–' : `${money(rate)} a million`,
    microusd: amount === null || rate === undefined ? null : (amount * rate) / 1_000_000,
  };
}

/** A line may be a part of a microdollar. */
const exact = (microusd: number | null): string =>
  microusd === null || Number.isInteger(microusd)
    ? money(microusd)
    : `$${(microusd / 1_000_000).toFixed(9).replace(/0+$/, '')}`;
