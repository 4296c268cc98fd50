import type { ComponentChildren } from 'preact';
import { useContext, useState } from 'preact/hooks';
import { useNames } from '../../api/names.ts';
import { short, time } from '../../data/format/format.ts';
import { zoneOf } from '../../data/format/range.ts';
import { hrefOf, usePlace } from './place.ts';
import { Rights } from './rights.ts';

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

/** The zone in which all pages show times. */
export const useZone = (): string => zoneOf(usePlace().params);

export function When({ at }: { at: number | null }) {
  const zone = useZone();
  if (at === null) return <>–</>;
  return <time dateTime={new Date(at * 1000).toISOString()}>{time(at, zone)}</time>;
}

/** Says why live figures are missing, so that settled figures are not mistaken for live ones. */
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

export const Status = ({ of }: { of: string }) => (
  <span class={`status ${of}`}>{of.replaceAll('_', ' ')}</span>
);

export const Json = ({ label, of }: { label: string; of: unknown }) => (
  <details>
    <summary>{label}</summary>
    <pre>{JSON.stringify(of, null, 2)}</pre>
  </details>
);

/** The beginning of an id, and a button that copies all of it. */
export function Id({ of, name }: { of: string; name: string }) {
  const [isCopied, setCopied] = useState(false);
  const copy = () => navigator.clipboard.writeText(of).then(() => setCopied(true));
  return (
    <span class="id">
      <code title={of}>{short(of)}</code>
      <button type="button" class="quiet" title={`Copy ${name} ${of}`} onClick={copy}>
        {isCopied ? 'Copied' : 'Copy'}
        <span class="unseen"> {name}</span>
      </button>
    </span>
  );
}

/** A link to the page of a customer. An empty name has no page, and cannot be filtered by. */
export const User = ({ of }: { of: string | null }) =>
  of ? <a href={hrefOf('customers', of)}>{of}</a> : <>{of === null ? '–' : NO_NAME}</>;

/** The text of an empty name. */
export const NO_NAME = '(empty)';

type Named = { readonly id: string | null };

/** The name of an API key, a virtual key or a budget, if the user may see it. */
export function useName(kind: 'api_key' | 'virtual_key' | 'budget', id: string | null): string {
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  return id === null ? '–' : (names?.[kind].get(id) ?? short(id));
}

export function ApiKeyName({ id }: Named) {
  const name = useName('api_key', id);
  return id === null ? <>–</> : <a href={hrefOf('keys', id)}>{name}</a>;
}

export function VirtualKeyName({ id }: Named) {
  const name = useName('virtual_key', id);
  return id === null ? <>–</> : <a href={hrefOf('keys', id)}>{name}</a>;
}
