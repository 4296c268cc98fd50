import type { AuditEntry } from '@presign/client';
import { useContext } from 'preact/hooks';
import { useAudit } from '../api/developer-queries.ts';
import { useNames } from '../api/names.ts';
import {
  AUDIT_ACTIONS,
  actionInWords,
  differencesOf,
  fieldInWords,
  TARGET_KINDS,
  valueInWords,
} from '../data/audit-words.ts';
import { short } from '../data/format/format.ts';
import { Choice, FilterForm } from '../parts/forms/form.tsx';
import { Page } from '../parts/page/answer.tsx';
import { useZone, When } from '../parts/page/facts.tsx';
import { NeedsScope } from '../parts/page/needs-scope.tsx';
import { href, hrefOf, type Place } from '../parts/page/place.ts';
import { useRange } from '../parts/page/range.tsx';
import { Rights } from '../parts/page/rights.ts';
import { type Column, PagedTable } from '../parts/tables/table.tsx';

/** The changes of the shown time, field by field, and who made them. */
export function Audit({ params }: { params: Place['params'] }) {
  const can = useContext(Rights);
  const { data: names } = useNames(can('admin'));
  const { isLive, ...range } = useRange();
  return (
    <Page title="Audit">
      {!can('admin') && <NeedsScope scope="admin" to="see the fields of API keys and webhooks" />}
      <FilterForm path="audit">
        <Choice
          label="Made by"
          name="actor"
          value={params.actor}
          options={[ALL, ...ITSELF, ...(names?.api_key ?? [])]}
        />
        <Choice label="Change" name="action" value={params.action} options={[ALL, ...AUDIT_ACTIONS]} />
        <Choice label="Of" name="target_kind" value={params.target_kind} options={[ALL, ...TARGET_KINDS]} />
      </FilterForm>
      <PagedTable
        of={useAudit(params, range, isLive)}
        rowsOf={({ data }) => data}
        caption="Changes"
        keyOf={({ id }) => id}
        empty="No change fits in this time."
        columns={COLUMNS}
        isDense
      />
    </Page>
  );
}

const ALL = ['', 'all'] as const;
/** Actors that are not API keys. */
const ITSELF = [
  ['cli', 'the command line'],
  ['issuer', 'the issuer, at its start'],
] as const;

const COLUMNS: readonly Column<AuditEntry>[] = [
  { head: 'Time', cell: ({ at }) => <When at={at} /> },
  { head: 'Change', isText: true, cell: (entry) => <Change of={entry} /> },
  { head: 'Difference', isText: true, cell: (entry) => <Differences of={entry} /> },
  { head: 'Made by', cell: ({ actor }) => <Actor of={actor} /> },
  { head: 'From', cell: ({ remote_address: address }) => address ?? '–' },
];

/** The names of keys and budgets by their ids. */
function useNameOf(): (id: string) => string {
  const { data: names } = useNames(useContext(Rights)('admin'));
  return (id) => names?.api_key.get(id) ?? names?.virtual_key.get(id) ?? names?.budget.get(id) ?? id;
}

function Differences({ of: { before, after } }: { of: AuditEntry }) {
  const nameOf = useNameOf();
  const zone = useZone();
  const all = differencesOf(before, after);
  if (all.length === 0) return <>–</>;
  return (
    <ul class="differences">
      {all.map(({ field, before: was, after: is }) => (
        <li key={field}>
          <b>{fieldInWords(field)}</b>:{' '}
          {before && (
            <>
              <del>{valueInWords(field, was, nameOf, zone)}</del>
              {' → '}
            </>
          )}
          <ins>{valueInWords(field, is, nameOf, zone)}</ins>
        </li>
      ))}
    </ul>
  );
}

/** The page of a thing that was changed. */
const PAGES: Readonly<Partial<Record<AuditEntry['target']['kind'], (id: string) => string>>> = {
  api_key: (id) => hrefOf('keys', id),
  virtual_key: (id) => hrefOf('keys', id),
  webhook: (id) => hrefOf('webhooks', id),
  session: (id) => hrefOf('urls', id),
  grant: (id) => hrefOf('urls/url', id),
  external_session: (id) => href('urls', { external_session: id }),
  external_user: (id) => hrefOf('customers', id),
  budget: (id) => hrefOf('limits', id),
  alert: (id) => hrefOf('alerts', id),
};

/** Describes the change in words, and names its target: by the current name, or else by the name in the entry. */
function Change({ of: { action, target, before, after } }: { of: AuditEntry }) {
  const { kind, id } = target;
  const known = useNameOf()(id);
  const named = [after?.name, before?.name, after?.host].find(
    (each) => typeof each === 'string' && each !== '',
  );
  const name =
    known !== id || kind.startsWith('external_') ? known : String(named ?? short(id.replace('vk_', '')));
  const page = PAGES[kind]?.(id);
  return (
    <>
      {actionInWords(action)}
      <div>
        {page ? <a href={page}>{name}</a> : name}{' '}
        <a class="soft" href={href('audit', { target_kind: kind, target_id: id })}>
          its changes<span class="unseen"> ({name})</span>
        </a>
      </div>
    </>
  );
}

function Actor({ of }: { of: string }) {
  const known = useNameOf()(of);
  const itself = ITSELF.find(([id]) => id === of)?.[1];
  return (
    <a href={href('audit', { actor: of })}>{itself ?? (known === of ? `API key ${short(of)}` : known)}</a>
  );
}
