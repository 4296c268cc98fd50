import { createContext } from 'preact';
import { useContext, useId, useRef } from 'preact/hooks';
import { useUsers } from '../api/names.ts';
import { useModels, useVirtualKeyList } from '../api/queries.ts';
import { tokenRates } from '../data/estimate.ts';
import { money } from '../data/format/format.ts';
import { Rights } from '../parts/page/rights.ts';
import { PATHS } from './dialects.ts';
import type { Texts } from './schema.ts';

/** A value, and its text for people. */
type Option = readonly [value: string, text: string];

export type Pick = {
  readonly options: readonly Option[];
  /** Whether no other value can be typed. */
  readonly isClosed?: boolean;
};

/** The values to choose from, by the names of fields. */
export const Picks = createContext<Readonly<Record<string, Pick>>>({});

/** The choices for a URL that the API key may read. */
export function usePicks(texts: Texts): Readonly<Record<string, Pick>> {
  const can = useContext(Rights);
  const isReader = can('read');
  const provider = texts.get('provider') ?? '';
  const users = useUsers(texts.get('external_user') ?? '', isReader);
  const { data: models } = useModels('', isReader);
  const { data: keys } = useVirtualKeyList(isReader);
  if (!isReader) return { path: { options: PATHS.map(plain) } };
  const providers = new Set([
    ...(keys?.rows ?? []).map((key) => key.provider),
    ...(models ?? []).map((each) => each.provider),
  ]);
  const own = (keys?.rows ?? []).filter(
    (key) => key.revoked_at === null && (provider === '' || key.provider === provider),
  );
  return {
    provider: { options: [...providers].sort().map(plain) },
    path: { options: PATHS.map(plain) },
    external_user: { options: users.map(plain) },
    models: {
      options: (models ?? [])
        .filter((each) => each.provider === provider)
        .map(({ model, rates }) => [model, priceOf(rates)] as const),
    },
    ...(own.length > 0 && {
      virtual_key: {
        options: own.map(({ id, name }) => [id, name] as const),
        isClosed: keys?.isCut === false,
      },
    }),
  };
}

const plain = (value: string): Option => [value, ''];

/** The prices of a million tokens. */
export function priceOf(rates: Readonly<Record<string, number>>): string {
  const { input, output } = tokenRates(rates);
  return [input !== undefined && `${money(input)} in`, output !== undefined && `${money(output)} out`]
    .filter(Boolean)
    .join(', ')
    .concat(input === undefined && output === undefined ? '' : ' a million');
}

export const Options = ({ id, of }: { id: string; of: readonly Option[] }) => (
  <datalist id={id}>
    {of.map(([value, text]) => (
      <option key={value} value={value}>
        {text}
      </option>
    ))}
  </datalist>
);

/** A field that appends a line to the control before it. */
export function Add({ label, of }: { label: string; of: readonly Option[] }) {
  const id = useId();
  const field = useRef<HTMLInputElement>(null);
  const add = () => {
    const own = field.current;
    const area = own?.closest('.field')?.querySelector('textarea');
    const value = own?.value.trim();
    if (!own || !area || !value) return;
    area.value = [...new Set([...area.value.split('\n').filter(Boolean), value])].join('\n');
    own.value = '';
    area.dispatchEvent(new Event('input', { bubbles: true }));
  };
  return (
    <span class="buttons add">
      <input
        ref={field}
        aria-label={`Add to ${label}`}
        placeholder="Choose one"
        list={id}
        autocomplete="off"
        onKeyDown={(event) => {
          if (event.key !== 'Enter') return;
          event.preventDefault();
          add();
        }}
      />
      <button type="button" onClick={add}>
        Add<span class="unseen"> the chosen one to {label}</span>
      </button>
      <Options id={id} of={of} />
    </span>
  );
}
