import type { Call, CallWithRefunds } from '@presign/client';
import { useCall, useSimilar } from '../api/queries.ts';
import { count, duration, money, short } from '../data/format/format.ts';
import { Answer, Page } from '../parts/page/answer.tsx';
import { ApiKeyName, Facts, Id, User, useName, VirtualKeyName, When } from '../parts/page/facts.tsx';
import { hrefOf } from '../parts/page/place.ts';
import { CALL_COLUMNS, ENDED, Ended, keyOfCall, providerOf } from '../parts/tables/calls.tsx';
import { type Column, Table } from '../parts/tables/table.tsx';

/** One request: how it ended in words, when, what it cost line by line, the limit that it met, and calls like it. */
export function RequestPage({ id }: { id: string }) {
  return (
    <Page title={`Request ${short(id)}`}>
      <Answer of={useCall(id)}>
        {(call) => (
          <>
            <p class="lead">
              <Ended call={call} />
            </p>
            <Timeline call={call} />
            <h2>{call.refusal ? 'The limit' : 'From hold to charge'}</h2>
            {call.refusal ? <Refusal of={call.refusal} /> : <Price call={call} />}
            <h2>Details</h2>
            <About call={call} />
            <h2>Calls like it, within a minute</h2>
            <Similar id={id} />
          </>
        )}
      </Answer>
    </Page>
  );
}

/** The moments of a call, in order. */
const Timeline = ({ call }: { call: CallWithRefunds }) => (
  <ol class="timeline" aria-label="Timeline">
    <li>
      <When at={call.started_at} /> <span>arrived at the gateway</span>
    </li>
    {call.first_byte_ms !== null && (
      <li>
        <b>+ {duration(call.first_byte_ms)}</b> <span>first byte of the answer</span>
      </li>
    )}
    {call.total_ms !== null && (
      <li>
        <b>+ {duration(call.total_ms)}</b>{' '}
        <span>
          end of the answer{call.status === null ? '' : `, status ${call.status}`}
          {call.own_ms === null ? '' : `; Presign took ${duration(call.own_ms)} of it`}
        </span>
      </li>
    )}
    <li>
      <When at={call.settled_at} />{' '}
      <span>{call.refusal ? `refused with status ${call.status}` : 'settled'}</span>
    </li>
  </ol>
);

function Similar({ id }: { id: string }) {
  return (
    <Answer of={useSimilar(id)}>
      {({ data }) => (
        <Table
          caption="Similar calls"
          rows={data.filter((call) => call.request_id !== id)}
          keyOf={keyOfCall}
          empty="None: the client has not repeated it."
          columns={SIMILAR_COLUMNS}
          isDense
        />
      )}
    </Answer>
  );
}

/** Above 0, the SDK repeated the call, and its holder asked only once. */
const REPEATED: Column<Call> = { head: 'Repeated by the SDK', figure: true, cell: (call) => repeatsOf(call) };

/** The number of repetitions is next to the time, where a narrow window shows it. */
const SIMILAR_COLUMNS: readonly Column<Call>[] = [...CALL_COLUMNS.toSpliced(1, 0, REPEATED), ENDED];

const repeatsOf = ({ retry_count: repeats }: Pick<Call, 'retry_count'>): string =>
  repeats === null ? 'not stated' : count(repeats);

const About = ({ call }: { call: CallWithRefunds }) => (
  <Facts
    of={[
      ['User', <User key="user" of={call.external_user} />],
      ['Provider', providerOf(call)],
      ['Model or tool', call.model ?? call.tool ?? '–'],
      ...Object.entries(call.metadata ?? {}).map(([key, value]) => [key, value] as const),
      ['Request', call.request_id === null ? '–' : <Id key="id" of={call.request_id} name="request id" />],
      [
        'Session',
        <a key="session" href={hrefOf('urls', call.session_id)}>
          {short(call.session_id)}
        </a>,
      ],
      [
        'URL',
        <a key="url" href={hrefOf('urls/url', call.grant_id)}>
          {short(call.grant_id)}
        </a>,
      ],
      ['API key', <ApiKeyName key="key" id={call.api_key} />],
      ['Virtual key', <VirtualKeyName key="virtual" id={call.virtual_key} />],
      ...(call.input_tokens === null
        ? []
        : ([['Tokens', `${count(call.input_tokens)} in, ${count(call.output_tokens)} out`]] as const)),
      ...(call.connection === null
        ? []
        : ([['Socket', `turn ${count(call.turn)} of ${short(call.connection)}`]] as const)),
      ['Uses', count(call.uses)],
      ['Repeated by the SDK', repeatsOf(call)],
      ['Client', call.user_agent ?? 'not stated'],
      ['Price list', call.price_list ? `${call.price_list.source} ${call.price_list.id}` : '–'],
    ]}
  />
);

const LIMITS = { url: 'the URL', virtual_key: 'the virtual key', budget: 'a shared budget' };

/** Amounts of money are in microdollars, as in all refusals for money. */
const isMoney = (code: string) => code.startsWith('cost_');

/** The limit that refused a call, with its figures. */
function Refusal({ of }: { of: NonNullable<CallWithRefunds['refusal']> }) {
  const budget = useName('budget', of.budget);
  const show = isMoney(of.code) ? money : count;
  const figures = [
    ['Limit', of.limit],
    ['Used', of.used],
    ['Needed', of.needed],
    ['Remaining', of.remaining],
  ] as const;
  return (
    <Facts
      of={[
        ['Code', <code key="code">{of.code}</code>],
        ...(of.reason === null ? [] : ([['Reason', of.reason]] as const)),
        ...(of.name === null ? [] : ([['Field, kind or model', of.name]] as const)),
        ['Limit of', of.limit_of ? LIMITS[of.limit_of] : 'no limit: a condition or its end'],
        ...(of.budget === null
          ? []
          : ([
              [
                'Budget',
                <a key="budget" href={hrefOf('limits', of.budget)}>
                  {budget}
                </a>,
              ],
            ] as const)),
        ...figures.flatMap(([name, figure]) => (figure === null ? [] : [[name, show(figure)] as const])),
        ['Bytes of the body', count(of.body_bytes)],
      ]}
    />
  );
}

type Line = {
  /** Several lines can have the same name: calls of tools of several prices. */
  readonly id: number;
  readonly name: string;
  readonly amount?: string;
  readonly rate?: string;
  readonly microusd: number | null;
};

type PriceLine = NonNullable<CallWithRefunds['price_lines']>[number];

/** The charge line by line: the units at their rates, the part that no limit is charged, and the refund. */
function Price({ call }: { call: CallWithRefunds }) {
  const { price_lines: lines, cost, overrun, refunds } = call;
  const charged = refunds.reduce<number | null>(
    (rest, refund) => (rest === null || refund.cost === null ? null : rest + refund.cost),
    cost,
  );
  const rows: Omit<Line, 'id'>[] = [
    ...(call.hold === null ? [] : [{ name: 'Held before the call', microusd: call.hold }]),
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

/** Units whose rates are shown for a million, because the rate of one is too small. */
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

/** The amount of a line may be less than a microdollar. */
const exact = (microusd: number | null): string =>
  microusd === null || Number.isInteger(microusd)
    ? money(microusd)
    : `${microusd < 0 ? '−' : ''}$${(Math.abs(microusd) / 1_000_000).toFixed(12).replace(/0+$/, '')}`;
