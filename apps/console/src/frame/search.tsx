import type { JSX } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useNames, useValues } from '../data/queries.ts';
import { href, hrefOf } from '../parts/place.ts';
import { Rights } from '../parts/rights.ts';

type Found = { readonly kind: string; readonly name: string; readonly href: string };
type Page = { readonly name: string; readonly path: string };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MOST_FOUND = 12;

const isMac = /mac/i.test(navigator.userAgent);

/** A button, also Ctrl+K or ⌘K, that opens a dialog which finds pages, customers, models, keys, budgets and ids. */
export function Search({ pages }: { pages: readonly Page[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [isOpen, setOpen] = useState(false);
  const open = () => {
    if (dialog.current?.open) return;
    setOpen(true);
    dialog.current?.showModal();
  };
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.metaKey || event.ctrlKey)) return;
      event.preventDefault();
      open();
    };
    addEventListener('keydown', onKey);
    return () => removeEventListener('keydown', onKey);
  }, []);
  return (
    <>
      <button type="button" class="search" onClick={open} aria-keyshortcuts={isMac ? 'Meta+K' : 'Control+K'}>
        Search <span class="keys">{isMac ? '⌘K' : 'Ctrl K'}</span>
      </button>
      <dialog ref={dialog} class="finder" aria-label="Search" onClose={() => setOpen(false)}>
        {isOpen && <Finder pages={pages} leave={() => dialog.current?.close()} />}
      </dialog>
    </>
  );
}

/** The pattern "combobox with a list" of WAI-ARIA: the field keeps the focus, and the arrows choose an option. */
function Finder({ pages, leave }: { pages: readonly Page[]; leave: () => void }) {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  const list = useId();
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const found = useFound(text.trim(), pages);
  const chosen = Math.min(at, found.length - 1);
  const go = (each: Found | undefined) => {
    if (!each) return;
    leave();
    location.hash = each.href;
  };
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLInputElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((chosen + step + found.length) % Math.max(1, found.length));
    else if (event.key === 'Enter') go(found[chosen]);
    else return;
    event.preventDefault();
  };
  const type = (value: string) => {
    setText(value);
    setAt(0);
  };
  return (
    <>
      <input
        ref={field}
        type="search"
        role="combobox"
        aria-label="Search customers, models, keys, budgets and ids"
        aria-expanded={found.length > 0}
        aria-controls={list}
        aria-activedescendant={found[chosen] && `${list}-${chosen}`}
        autocomplete="off"
        spellcheck={false}
        placeholder="Customer, model, key, budget, request id, session id"
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <div role="listbox" id={list} aria-label="Found">
        {found.map((each, place) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents lint/a11y/useFocusableInteractive: the field takes the keys
          <div
            key={each.href}
            id={`${list}-${place}`}
            role="option"
            aria-selected={place === chosen}
            onClick={() => go(each)}
          >
            <span>{each.name}</span> <small class="soft">{each.kind}</small>
          </div>
        ))}
      </div>
      <p class="soft" role="status">
        {found.length === 0 ? 'Nothing found.' : ''}
      </p>
    </>
  );
}

function useFound(text: string, pages: readonly Page[]): Found[] {
  const can = useContext(Rights);
  const isReader = can('read');
  const { data: users = [] } = useValues('external_user', isReader);
  const { data: models = [] } = useValues('model', isReader);
  const { data: names } = useNames(can('admin'), isReader);
  const fits = ({ name }: { readonly name: string }) => name.toLowerCase().includes(text.toLowerCase());
  const all = (kind: string, of: readonly string[], to: (name: string) => string): Found[] =>
    of.map((name) => ({ kind, name, href: to(name) }));
  const named = (
    kind: string,
    of: ReadonlyMap<string, string> | undefined,
    to: (id: string) => string,
  ): Found[] => [...(of ?? [])].map(([id, name]) => ({ kind, name, href: to(id) }));
  const typed = isReader ? typedCustomer(text, users) : [];
  if (UUID.test(text)) return [...idsOf(text.toLowerCase()), ...typed];
  const known = [
    ...pages.map(({ name, path }) => ({ kind: 'page', name, href: href(path) })),
    ...all('customer', users, (user) => hrefOf('customers', user)),
    ...all('model', models, (model) => href('requests', { model })),
    ...named('budget', names?.budget, (id) => hrefOf('limits', id)),
    ...named('API key', names?.api_key, (id) => hrefOf('keys', id)),
    ...named('virtual key', names?.virtual_key, (id) => hrefOf('keys', id)),
  ].filter(fits);
  return [...known.slice(0, MOST_FOUND - typed.length), ...typed];
}

/** The text as the name of a customer: the suggestions have some of the names alone. */
const typedCustomer = (text: string, users: readonly string[]): Found[] =>
  text === '' || users.includes(text)
    ? []
    : [{ kind: 'customer, as typed', name: text, href: hrefOf('customers', text) }];

/** An id says nothing of its kind, and each page says if there is no such thing. */
const idsOf = (id: string): Found[] => [
  { kind: 'request', name: id, href: hrefOf('requests', id) },
  { kind: 'session', name: id, href: hrefOf('urls', id) },
  { kind: 'URL', name: id, href: hrefOf('urls/url', id) },
  { kind: 'calls of the URL', name: id, href: href('requests', { grant_id: id }) },
];
