import type { JSX } from 'preact';
import { useContext, useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useFound, useNames, useValues } from '../api/names.ts';
import { href, hrefOf } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';

type Found = { readonly kind: string; readonly name: string; readonly href: string };
type Page = { readonly name: string; readonly path: string };

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const MOST_FOUND = 15;
const MOST_OF_KIND = 5;

const isMac = /mac/i.test(navigator.userAgent);

/** A button that opens the search for pages, customers, models, keys, budgets and ids. Ctrl+K and ⌘K open it too. */
export function Search({ pages }: { pages: readonly Page[] }) {
  const dialog = useRef<HTMLDialogElement>(null);
  /** How often it was opened since it was last seen closed: each time with an empty field. */
  const [opened, setOpened] = useState(0);
  const open = () => {
    if (dialog.current?.open) return;
    setOpened((before) => before + 1);
    dialog.current?.showModal();
  };
  // The event comes after the dialog has closed, which may be open again by then.
  const onClose = () => void (dialog.current?.open || setOpened(0));
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
      <dialog ref={dialog} class="finder" aria-label="Search" onClose={onClose}>
        {opened > 0 && <Finder key={opened} pages={pages} leave={() => dialog.current?.close()} />}
      </dialog>
    </>
  );
}

/** The pattern "combobox with a list" of WAI-ARIA: the field keeps the focus, and the arrows choose an option. */
function Finder({ pages, leave }: { pages: readonly Page[]; leave: () => void }) {
  const [text, setText] = useState('');
  const [picked, setPicked] = useState<string>();
  /** Enter was pressed while only the typed text was found. It opens the first one of the answer. */
  const [isEntered, setEntered] = useState(false);
  const list = useId();
  const field = useRef<HTMLInputElement>(null);
  useLayoutEffect(() => field.current?.focus(), []);
  const { found, isWaiting, note } = useAll(text.trim(), pages);
  // The choice is kept when names arrive while the user chooses.
  const chosen = Math.max(
    0,
    found.findIndex((each) => each.href === picked),
  );
  const go = (each: Found | undefined) => {
    if (!each) return;
    leave();
    location.hash = each.href;
  };
  useEffect(() => {
    if (isEntered && !isWaiting) go(found[chosen]);
  }, [isEntered, isWaiting]);
  const onKeyDown = (event: JSX.TargetedKeyboardEvent<HTMLInputElement>) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setPicked(found.at((chosen + step) % Math.max(1, found.length))?.href);
    else if (event.key === 'Enter') {
      const mayChange = isWaiting && picked === undefined && found[chosen]?.kind === TYPED;
      if (mayChange) setEntered(true);
      else go(found[chosen]);
    } else return;
    event.preventDefault();
  };
  const type = (value: string) => {
    setText(value);
    setPicked(undefined);
    setEntered(false);
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
        {note}
      </p>
    </>
  );
}

function useAll(
  text: string,
  pages: readonly Page[],
): { readonly found: readonly Found[]; readonly isWaiting: boolean; readonly note: string } {
  const can = useContext(Rights);
  const isReader = can('read');
  const isId = UUID.test(text);
  const searched = useFound(text, isReader && !isId);
  const { data: models = [] } = useValues('model', isReader);
  const { data: names } = useNames(can('admin'), isReader);
  if (isId)
    return {
      found: [...idsOf(text.toLowerCase()), ...(isReader ? [typed(text)] : [])],
      isWaiting: false,
      note: '',
    };
  const fits = ({ name }: { readonly name: string }) => name.toLowerCase().includes(text.toLowerCase());
  const named = (
    kind: string,
    of: Iterable<readonly [id: string, name: string]> = [],
    to: (id: string) => string,
  ): Found[] =>
    Array.from(of, ([id, name]) => ({ kind, name, href: to(id) }))
      .filter(fits)
      .slice(0, MOST_OF_KIND);
  const of = (kind: string) =>
    searched.found.filter((each) => each.kind === kind).map(({ id, name }) => [id, name] as const);
  const customers = named('customer', of('external_user'), (user) => hrefOf('customers', user));
  const known = [
    ...pages.map(({ name, path }) => ({ kind: 'page', name, href: href(path) })).filter(fits),
    ...customers,
    ...named('session', of('session'), (id) => hrefOf('urls', id)),
    ...named(
      'model',
      models.map((model) => [model, model] as const),
      (model) => href('requests', { model }),
    ),
    ...named('budget', names?.budget, (id) => hrefOf('limits', id)),
    ...named('API key', names?.api_key, (id) => hrefOf('keys', id)),
    ...named('virtual key', names?.virtual_key, (id) => hrefOf('keys', id)),
  ].slice(0, MOST_FOUND);
  const isKnown = text === '' || customers.some(({ name }) => name === text);
  const found = isReader && !isKnown ? [...known, typed(text)] : known;
  return { found, isWaiting: searched.isWaiting, note: noteOf(searched, found.length) };
}

/** Says what the list does not say by itself. */
function noteOf({ isWaiting, error, isWhole }: ReturnType<typeof useFound>, found: number): string {
  if (isWaiting) return 'Searching…';
  if (error) return 'Not all names were searched.';
  if (!isWhole) return 'There may be more: type the beginning of the name.';
  return found === 0 ? 'Nothing found.' : '';
}

const TYPED = 'customer, as typed';

/** Offers the text itself as a customer name, because the search may not find the customer. */
const typed = (text: string): Found => ({
  kind: TYPED,
  name: text,
  href: hrefOf('customers', text),
});

/** An id does not show its kind, so every page that takes an id is offered. A page says if its id does not exist. */
const idsOf = (id: string): Found[] => [
  { kind: 'request', name: id, href: hrefOf('requests', id) },
  { kind: 'session', name: id, href: hrefOf('urls', id) },
  { kind: 'URL', name: id, href: hrefOf('urls/url', id) },
  { kind: 'calls of the URL', name: id, href: href('requests', { grant_id: id }) },
];
