import type { AuditEntry } from '@presign/client';
import { short } from '../data/format.ts';
import { useAudit } from '../data/queries.ts';
import { Page } from '../parts/answer.tsx';
import { Json, When } from '../parts/facts.tsx';
import { Choice, Field, FilterForm } from '../parts/form.tsx';
import { href, type Place } from '../parts/place.ts';
import { type Column, PagedTable } from '../parts/table.tsx';

export const Audit = ({ params }: { params: Place['params'] }) => (
  <Page title="Audit">
    <FilterForm path="audit">
      <Field label="Actor (API key id, cli or issuer)" name="actor" value={params.actor} />
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
  {
    head: 'Changed',
    cell: ({ target: { kind, id } }) => (
      <a href={href('audit', { target_kind: kind, target_id: id })}>
        {kind.replace('_', ' ')} {kind === 'external_user' ? id : short(id)}
      </a>
    ),
  },
  {
    head: 'Actor',
    cell: ({ actor }) => (
      <a href={href('audit', { actor })}>
        {/^[0-9a-f-]{36}$/.test(actor) ? `API key ${short(actor)}` : actor}
      </a>
    ),
  },
  { head: 'From', cell: ({ remote_address: address }) => address ?? '–' },
  {
    head: 'States',
    cell: ({ before, after }) =>
      before || after ? <Json label="Before and after" of={{ before, after }} /> : '–',
  },
];
