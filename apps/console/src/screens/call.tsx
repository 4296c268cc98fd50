import type { CallWithRefunds } from '@presign/client';
import { count, money, short } from '../data/format.ts';
import { useCall } from '../data/queries.ts';
import { Answer, Page } from '../parts/answer.tsx';
import { Facts, Status, When } from '../parts/facts.tsx';
import { href } from '../parts/place.ts';
import { Table } from '../parts/table.tsx';
import { providerOf } from './calls.tsx';

export function CallPage({ id }: { id: string }) {
  return (
    <Page title={`Call ${short(id)}`}>
      <Answer of={useCall(id)}>
        {(call) => (
          <>
            <About call={call} />
            <h2>{call.refusal ? 'Refusal' : 'Price'}</h2>
            {call.refusal ? <Refusal of={call.refusal} /> : <Price call={call} />}
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
      [call.refusal ? 'Status' : 'Status of the provider', call.status ?? '–'],
      ['Started', <When key="started" at={call.started_at} />],
      ['Settled', <When key="settled" at={call.settled_at} />],
      ['Provider', providerOf(call)],
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
      ...(call.input_tokens === null
        ? []
        : ([['Tokens', `${count(call.input_tokens)} in, ${count(call.output_tokens)} out`]] as const)),
      ['Uses', count(call.uses)],
      ['Held before the call', money(call.hold)],
      ['Price list', call.price_list ? `${call.price_list.source} ${call.price_list.id}` : '–'],
    ]}
  />
);

const LIMITS = { url: 'the URL', virtual_key: 'the virtual key', budget: 'a shared budget' };

/** Why a call was refused: the code, and the figures of the limit. */
const Refusal = ({ of }: { of: NonNullable<CallWithRefunds['refusal']> }) => (
  <Facts
    of={[
      ['Code', <code key="code">{of.code}</code>],
      ['Reason', of.reason ?? '–'],
      ['Field, kind or model', of.name ?? '–'],
      ['Limit of', of.limit_of ? LIMITS[of.limit_of] : '–'],
      ['Shared budget', of.budget ?? '–'],
      ['Limit', count(of.limit)],
      ['Used', count(of.used)],
      ['Needed', count(of.needed)],
      ['Remaining', count(of.remaining)],
      ['Bytes of the body', count(of.body_bytes)],
    ]}
  />
);

type Line = {
  /** Several lines can have the same name: calls of tools of several prices. */
  readonly id: number;
  readonly name: string;
  readonly amount?: string;
  readonly rate?: string;
  readonly microusd: number | null;
};

type PriceLine = NonNullable<CallWithRefunds['price_lines']>[number];

/** The charge line by line: the units at their rates, the part that no limit is charged, and what was given back. */
function Price({ call }: { call: CallWithRefunds }) {
  const { price_lines: lines, cost, overrun, refunds } = call;
  const charged = refunds.reduce<number | null>(
    (rest, refund) => (rest === null || refund.cost === null ? null : rest + refund.cost),
    cost,
  );
  const rows: Omit<Line, 'id'>[] = [
    ...(lines ?? []).map(priceLine),
    ...(lines ? [{ name: 'Sum, rounded up', microusd: cost === null ? null : cost + overrun }] : []),
    ...(lines && overrun > 0 ? [{ name: 'Above the hold, not charged', microusd: -overrun }] : []),
    ...(refunds.length > 0 ? [{ name: 'Charged at first', microusd: cost }] : []),
    ...refunds.map((refund, at) => ({
      name: at === 0 ? 'Given back' : `Given back, ${at + 1}.`,
      microusd: refund.cost,
    })),
    { name: 'Charged', microusd: charged },
  ];
  return (
    <>
      <Table
        caption="Price of this call"
        rows={rows.map((row, id) => ({ id, ...row }))}
        keyOf={({ id }) => String(id)}
        columns={[
          { head: 'Line', cell: ({ name }) => name },
          { head: 'Amount', figure: true, cell: ({ amount }) => amount },
          { head: 'Rate', figure: true, cell: ({ rate }) => rate },
          { head: 'Dollars', figure: true, cell: ({ microusd }) => exact(microusd) },
        ]}
      />
      {!lines && <p class="soft">{whyNoLines(call)}</p>}
    </>
  );
}

/** Why the charge does not follow from a usage. */
function whyNoLines(call: CallWithRefunds): string {
  const { cost, hold, overrun, outcome, status, server, input_tokens: input } = call;
  if (cost === null) return 'The cost is not known, and no limit needed it.';
  if (outcome === 'lease_ended') return 'The gateway ended during the call, so its whole hold is charged.';
  if (cost === 0 && overrun === 0 && input === null)
    return 'The provider did not do billed work, so nothing is charged.';
  if (cost !== hold || overrun > 0)
    return `The lines were not recorded: ${server === null ? 'the reported counts contradict each other' : 'the calls have more than 20 prices'}.`;
  if (status !== null && status >= 400)
    return 'The provider refused the call and may have billed it, or too many calls of this URL were free before it, so the whole hold is charged.';
  if (input === null) return 'The provider did not report the usage in full, so the whole hold is charged.';
  return 'The reported usage has no price, or too many calls of this URL were free before it, so the whole hold is charged.';
}

/** Units that are counted in millions: their rates are too small for one. */
const isTokens = (unit: string) => unit.endsWith('_tokens');

function priceLine({ unit, count: amount, rate }: PriceLine): Omit<Line, 'id'> {
  const words = unit.replaceAll('_', ' ');
  return {
    name:
      unit === 'other'
        ? 'Other rules of the price list'
        : `${words.charAt(0).toUpperCase()}${words.slice(1)}`,
    amount: count(amount),
    rate: `${exact(rate)} ${isTokens(unit) ? 'a million' : 'each'}`,
    microusd: isTokens(unit) ? (amount * rate) / 1_000_000 : amount * rate,
  };
}

/** A line may be a part of a microdollar. */
const exact = (microusd: number | null): string =>
  microusd === null || Number.isInteger(microusd)
    ? money(microusd)
    : `${microusd < 0 ? '−' : ''}$${(Math.abs(microusd) / 1_000_000).toFixed(12).replace(/0+$/, '')}`;
