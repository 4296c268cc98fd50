import type { ComponentChildren } from 'preact';
import { time } from '../data/format.ts';

/** Names and values. */
export const Facts = ({ of }: { of: readonly (readonly [string, ComponentChildren])[] }) => (
  <dl>
    {of.map(([name, value]) => (
      <div key={name}>
        <dt>{name}</dt>
        <dd>{value}</dd>
      </div>
    ))}
  </dl>
);

export const When = ({ at }: { at: number | null }) =>
  at === null ? <>–</> : <time dateTime={new Date(at * 1000).toISOString()}>{time(at)}</time>;

/** Says why there are no live figures, so that settled ones are not mistaken for them. */
export const NotLive = () => (
  <p role="status" class="failed">
    Redis does not answer. These figures are of the calls that the ledger has, without running calls and
    holds.
  </p>
);

/** How full something is. It says so in words too, for those who do not see the bar. */
export function Fullness({ of, used, most }: { of: string; used: number; most: number }) {
  const percent = most === 0 ? 100 : Math.min(100, Math.floor((used / most) * 100));
  return (
    <span class="fullness">
      <meter min={0} max={100} high={80} optimum={0} value={percent} aria-label={`${of}, percent`} />
      {percent} %
    </span>
  );
}

export const Status = ({ of }: { of: string }) => <span class={`status ${of}`}>{of}</span>;

export const Json = ({ label, of }: { label: string; of: unknown }) => (
  <details>
    <summary>{label}</summary>
    <pre>{JSON.stringify(of, null, 2)}</pre>
  </details>
);
