import type { KeyPolicy } from '@presign/client';
import { useContext, useState } from 'preact/hooks';
import { useNames, useUsers } from '../api/names.ts';
import { useLimits, useModels } from '../api/queries.ts';
import { short } from '../data/format/format.ts';
import { Rights } from '../parts/page/rights.ts';
import { Checks, type Edit, Entry, Flag, Group, List } from './policy-controls.tsx';
import { draftOf, parse, policyOf } from './policy-draft.ts';
import { PolicyJson } from './policy-json.tsx';
import { limitInWords, type NameOf, policyInWords } from './policy-words.ts';

/** The name of the field with the policy's JSON. */
export const POLICY = 'policy';

/** The policy of a form with an editor. Null: the key may issue everything. */
export const policyIn = (fields: Readonly<Record<string, string>>): KeyPolicy | null =>
  (parse(fields[POLICY] ?? '') as KeyPolicy | undefined) ?? null;

/** Shows a control for each field of a policy, a summary in one sentence, and the JSON. */
export function PolicyEditor({ policy }: { policy: KeyPolicy | null }) {
  const [draft, setDraft] = useState(() => draftOf(policy ?? {}));
  const nameOf = useKeyNames();
  const edited = policyOf(draft);
  const edit: Edit = {
    draft,
    setText: (field, text) => setDraft((now) => ({ ...now, texts: { ...now.texts, [field]: text } })),
    setList: (field, list) =>
      setDraft((now) => ({ ...now, lists: { ...now.lists, [field]: list.length > 0 ? list : undefined } })),
  };
  return (
    <fieldset class="policy" onInvalidCapture={unfold}>
      <legend>Policy</legend>
      <p role="status">
        {policyInWords(policyOf({ ...draft, others: {} }), nameOf)}
        {Object.keys(draft.others).length > 0 && ' The JSON has more, which the issuer judges when you save.'}
      </p>
      <input type="hidden" name={POLICY} value={edited === null ? '' : JSON.stringify(edited)} />
      <Targets {...edit} nameOf={nameOf} />
      <Limits {...edit} />
      <Conditions {...edit} />
      <PolicyJson policy={edited} onChange={(value) => setDraft(draftOf(value))} />
    </fieldset>
  );
}

/** The browser shows its validation message only at a visible control. */
const unfold = ({ target }: Event): void => {
  const fold = target instanceof Element ? target.closest('details') : null;
  if (fold) fold.open = true;
};

/** Names of virtual keys by their ids. */
export function useKeyNames(): NameOf {
  const { data: names } = useNames(useContext(Rights)('admin'));
  return (id) => names?.virtual_key.get(id) ?? short(id.replace('vk_', ''));
}

const TARGETS = ['providers', 'models', 'paths', 'virtual_keys', 'mcp_hosts'] as const;

function Targets({ nameOf, ...edit }: Edit & { readonly nameOf: NameOf }) {
  const [isEntered, setEntered] = useState(false);
  const { data: models = [] } = useModels('', isEntered);
  const { providers = [] } = edit.draft.lists;
  const enter = () => setEntered(true);
  const fitting = models.filter(({ provider }) => providers.length === 0 || providers.includes(provider));
  return (
    <Group name="Providers, models and paths" fields={TARGETS} {...edit}>
      <List
        {...edit}
        field="providers"
        label="Providers"
        hint="mcp stands for MCP servers. None: all."
        onFocus={enter}
        suggested={[...new Set(models.map(({ provider }) => provider)), 'mcp']}
      />
      <List
        {...edit}
        field="models"
        label="Models"
        hint="None: all."
        onFocus={enter}
        suggested={[...new Set(fitting.map(({ model }) => model))].slice(0, MOST_SUGGESTED)}
      />
      <List
        {...edit}
        field="paths"
        label="Paths"
        hint="* stands for any characters except /. None: all."
        suggested={['/v1/chat/completions', '/v1/responses', '/v1/messages', '/v1/embeddings']}
      />
      <List
        {...edit}
        field="mcp_hosts"
        label="Hosts of MCP servers"
        hint="Such as mcp.example.com. None: all."
      />
      <VirtualKeys {...edit} nameOf={nameOf} />
    </Group>
  );
}

const MOST_SUGGESTED = 500;

/** Virtual keys are chosen by their names. */
function VirtualKeys({ nameOf, ...edit }: Edit & { readonly nameOf: NameOf }) {
  const { data: names } = useNames(useContext(Rights)('admin'));
  const chosen = edit.draft.lists.virtual_keys ?? [];
  const inForce = (names?.keys.virtual_key ?? []).filter(({ revoked_at: end }) => end === null);
  const ids = [...new Set([...chosen, ...inForce.map(({ id }) => id)])];
  return (
    <Checks
      {...edit}
      field="virtual_keys"
      legend="Virtual keys"
      hint={ids.length === 0 ? 'This account has none.' : 'None: all, and keys of providers.'}
      options={ids.map((id) => [id, nameOf(id)] as const)}
    />
  );
}

/** Limits of a URL, as the issuer names them. */
function useLimitNames(): string[] {
  const { data: limits } = useLimits();
  return Object.entries(limits?.presign ?? {}).flatMap(([name, range]) =>
    typeof range === 'object' && range !== null && 'maximum' in range && name !== 'expires_in' ? [name] : [],
  );
}

const title = (words: string): string => words.slice(0, 1).toUpperCase() + words.slice(1);

function Limits(edit: Edit) {
  const names = useLimitNames();
  const counts = names.filter((name) => name !== 'cost_limit');
  const fields = [...names, 'expires_in'].map((name) => `highest.${name}` as const);
  return (
    <Group name="The most of each URL" fields={[...fields, 'required']} {...edit}>
      <Entry
        {...edit}
        field="highest.cost_limit"
        label="Dollars"
        hint="A URL without this limit is refused."
      />
      <Entry
        {...edit}
        field="highest.expires_in"
        label="Lasts"
        hint="Such as 15 minutes or 2 days."
        suggested={['10 minutes', '1 hour', '1 day', '7 days']}
      />
      {counts.map((name) => (
        <Entry
          key={name}
          {...edit}
          field={`highest.${name}`}
          label={title(limitInWords(name))}
          type="number"
        />
      ))}
      <Checks
        {...edit}
        field="required"
        legend="Each URL must limit"
        hint="To any size."
        options={names.map((name) => [name, `its ${limitInWords(name)}`] as const)}
      />
    </Group>
  );
}

const CONDITIONS = [
  ...(['bind.origins', 'bind.ip_ranges', 'sockets', 'external_user', 'max_body_bytes'] as const),
  ...(['allowed_fields', 'config', 'refuse_warnings'] as const),
];

const SOCKETS = {
  '': 'as the request says',
  true: 'each URL must open as one',
  false: 'no URL opens as one',
};
const WARNINGS = { '': 'issue the URL with them', true: 'refuse the URL', false: 'issue the URL (false)' };

function Conditions(edit: Edit) {
  const [isEntered, setEntered] = useState(false);
  const users = useUsers(edit.draft.texts.external_user ?? '', isEntered);
  return (
    <Group name="Callers and bodies" fields={CONDITIONS} {...edit}>
      <List {...edit} field="bind.origins" label="Origins of pages" hint="Scheme and host, without a path." />
      <List {...edit} field="bind.ip_ranges" label="Addresses" hint="Such as 203.0.113.0/24." />
      <Entry
        {...edit}
        field="external_user"
        label="User"
        hint="Set in each URL."
        suggested={users}
        onFocus={() => setEntered(true)}
      />
      <Flag {...edit} field="sockets" label="Sockets" texts={SOCKETS} />
      <Entry {...edit} field="max_body_bytes" label="Bytes of a body" type="number" />
      <List {...edit} field="allowed_fields" label="Fields of a body" hint="Such as messages. None: all." />
      <Entry
        {...edit}
        field="config"
        label="Settings of each call"
        hint='JSON, such as {"max_tokens": 500}.'
      />
      <Flag {...edit} field="refuse_warnings" label="Warnings" texts={WARNINGS} />
    </Group>
  );
}
