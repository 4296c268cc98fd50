import type { AuditEntry } from '@presign/client';
import { useContext } from 'preact/hooks';
import { short } from '../data/format.ts';
import { useAudit, useNames } from '../data/queries.ts';
import { Page } from '../parts/answer.tsx';
import { Json, useName, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm } from '../parts/form.tsx';
import { href, type Place } from '../parts/place.ts';
import { Rights } from '../parts/rights.ts';
import { type Column, PagedTable } from '../parts/table.tsx';

export function Audit({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  return (
    <Page title="Audit">
      <FilterForm path="audit">
        <Choice
          label="Actor"
          name="actor"
          value={params.actor}
          options={[['', 'all'], ['cli', 'cli'], ['issuer', 'issuer'], ...(names?.api_key ?? [])]}
        />
        <Choice label="Kind" name="target_kind" value={params.target_kind ?? ''} options={KINDS} />
        <Field label="Id of what changed" name="target_id" value={params.target_id} />
      </FilterForm>
      <PagedTable
        of={useAudit(params)}
        rowsOf={({ data }) => data}
        caption="Changes"
        keyOf={({ id }) => id}
        empty="No change fits."
        columns={COLUMNS}
      />
    </Page>
  );
}

const TARGETS: readonly AuditEntry['target']['kind'][] = [
  'api_key',
  'virtual_key',
  'webhook',
  'grant',
  'session',
  'budget',
  'external_user',
];
const KINDS = [['', 'all'] as const, ...TARGETS.map((kind) => [kind, kind.replace('_', ' ')] as const)];

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: 'Time', cell: ({ at }) => <When at={at} /> },
  { head: 'Action', cell: ({ action }) => action },
  { head: 'Changed', cell: ({ target }) => <Target of={target} /> },
  { head: 'Actor', cell: ({ actor }) => <Actor of={actor} /> },
  { head: 'From', cell: ({ remote_address: address }) => address ?? '–' },
  {
    head: 'States',
    cell: ({ before, after }) =>
      before || after ? <Json label="Before and after" of={{ before, after }} /> : '–',
  },
];

/** The thing that was changed, by its name where it has one. */
function Target({ of: { kind, id } }: { of: AuditEntry['target'] }) {
  const named = kind === 'api_key' || kind === 'virtual_key' || kind === 'budget' ? kind : undefined;
  const name = useName(named ?? 'budget', named === undefined ? null : id);
  const words = kind.replace('_', ' ');
  return (
    <a href={href('audit', { target_kind: kind, target_id: id })}>
      {words} {named === undefined ? (kind === 'external_user' ? id : short(id)) : name}
    </a>
  );
}

function Actor({ of }: { of: string }) {
  const isKey = /^[0-9a-f-]{36}$/.test(of);
  const name = useName('api_key', isKey ? of : null);
  return <a href={href('audit', { actor: of })}>{isKey ? `API key ${name}` : of}</a>;
}
