import type { Limits } from '@presign/client';
import type { ComponentChildren } from 'preact';
import { useRef } from 'preact/hooks';
import { ISSUER, signOut } from '../api/api.ts';
import { href } from '../parts/page/place.ts';
import { RangePicker } from '../parts/page/range.tsx';
import { Search } from './search.tsx';

export type NavEntry = { readonly path: string; readonly name: string; readonly group: string };

type ShellProps = {
  readonly limits: Limits;
  readonly entries: readonly NavEntry[];
  readonly current: NavEntry | undefined;
  /** Whether the API key may read, and the page therefore has a range to choose. */
  readonly isReader: boolean;
  readonly children: ComponentChildren;
};

/** Set by the build: the version of the console, which is that of its issuer. */
declare const __VERSION__: string;

/** The frame of each page: the navigation, the search, and the time that all pages show. */
export function Shell({ limits, entries, current, isReader, children }: ShellProps) {
  const main = useRef<HTMLElement>(null);
  const menu = useRef<HTMLElement>(null);
  return (
    <div class="shell">
      <button type="button" class="skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header>
        <button type="button" class="menu" popovertarget="menu">
          Menu
        </button>
        <Search pages={entries} />
        {isReader && <RangePicker />}
      </header>
      <aside class="side" id="menu" popover="auto" ref={menu} aria-label="Presign">
        <p class="brand">
          <strong>Presign</strong> <small class="soft">{__VERSION__}</small>
        </p>
        <nav aria-label="Screens">
          {[...new Set(entries.map(({ group }) => group))].map((group) => (
            <Group
              key={group}
              name={group}
              entries={entries}
              current={current}
              leave={() => menu.current?.hidePopover()}
            />
          ))}
        </nav>
        <Account limits={limits} />
      </aside>
      <main ref={main} tabIndex={-1}>
        {children}
      </main>
    </div>
  );
}

type GroupProps = Pick<ShellProps, 'entries' | 'current'> & {
  readonly name: string;
  readonly leave: () => void;
};

const Group = ({ name, entries, current, leave }: GroupProps) => (
  <>
    {name !== '' && <h2>{name}</h2>}
    <ul>
      {entries
        .filter(({ group }) => group === name)
        .map((each) => (
          <li key={each.path}>
            <a href={href(each.path)} aria-current={each === current ? 'page' : undefined} onClick={leave}>
              {each.name}
            </a>
          </li>
        ))}
    </ul>
  </>
);

const Account = ({ limits: { account_name: account, api_key: key } }: { limits: Limits }) => (
  <section class="account" aria-label="Signed in">
    <p>
      <strong>{account}</strong>
      <br />
      {key.name}
      <br />
      <small class="soft">{key.scopes.join(', ')}</small>
    </p>
    <p>
      <a href={`${ISSUER}/docs`}>Documentation</a>
    </p>
    <button type="button" onClick={leave}>
      Sign out
    </button>
  </section>
);

/** A reload clears the session from the page's memory. */
const leave = () => signOut().finally(() => location.reload());
