import type { Limits } from '@presign/client';
import { QueryClient, QueryClientProvider } from '@tanstack/preact-query';
import { type ComponentType, type JSX, render } from 'preact';
import { useRef, useState } from 'preact/hooks';
import { SIGNED_OUT, signIn, signOut } from './data/api.ts';
import { useLimits } from './data/queries.ts';
import { Issue } from './issue/issue.tsx';
import { Failed, Page, Waiting } from './parts/answer.tsx';
import { Field } from './parts/form.tsx';
import { href, type Place, usePlace } from './parts/place.ts';
import { type Can, canOf, Rights } from './parts/rights.ts';
import { Audit } from './screens/audit.tsx';
import { Budgets } from './screens/budgets.tsx';
import { CallPage } from './screens/call.tsx';
import { Calls } from './screens/calls.tsx';
import { Keys } from './screens/keys.tsx';
import { Overview } from './screens/overview.tsx';
import { SessionPage, Sessions } from './screens/sessions.tsx';
import { Usage } from './screens/usage.tsx';
import { Deliveries, Webhooks } from './screens/webhooks.tsx';
import './style.css';
import './parts/parts.css';

export function App() {
  const { data: limits, error } = useLimits();
  if (limits === null) return <SignIn />;
  if (limits) return <Shell limits={limits} />;
  return <main class="alone">{error ? <Failed error={error} /> : <Waiting />}</main>;
}

type Screen = ComponentType<{ id: string; params: Place['params'] }>;
type Entry = {
  readonly path: string;
  readonly name: string;
  readonly scope: Parameters<Can>[0];
  readonly screen: Screen;
  /** The page of one of them. */
  readonly one?: Screen;
};

/** The navigation. An entry whose scope the API key lacks is not shown. */
const ENTRIES: readonly Entry[] = [
  { path: '', name: 'Overview', scope: 'read', screen: Overview },
  { path: 'budgets', name: 'Budgets', scope: 'read', screen: Budgets },
  { path: 'sessions', name: 'Sessions', scope: 'read', screen: Sessions, one: SessionPage },
  { path: 'issue', name: 'Issue', scope: 'presign', screen: Issue, one: Issue },
  { path: 'calls', name: 'Calls', scope: 'read', screen: Calls, one: CallPage },
  { path: 'usage', name: 'Usage', scope: 'read', screen: Usage },
  { path: 'keys', name: 'Keys', scope: 'read', screen: Keys },
  { path: 'webhooks', name: 'Webhooks', scope: 'admin', screen: Webhooks, one: Deliveries },
  { path: 'audit', name: 'Audit', scope: 'read', screen: Audit },
];

function Shell({ limits }: { limits: Limits }) {
  const { path, params } = usePlace();
  const main = useRef<HTMLElement>(null);
  const can = canOf(limits);
  const [first = '', id] = path;
  const entries = ENTRIES.filter(({ scope }) => can(scope));
  // A key that cannot read begins with the first screen that it has.
  const entry = entries.find((each) => each.path === first) ?? (first === '' ? entries[0] : undefined);
  const Screen = id === undefined ? entry?.screen : entry?.one;
  return (
    <Rights.Provider value={can}>
      <header>
        <button type="button" class="skip" onClick={() => main.current?.focus()}>
          Skip to content
        </button>
        <strong>Presign</strong>
        <nav aria-label="Screens">
          <ul>
            {entries.map((each) => (
              <li key={each.path}>
                <a href={href(each.path)} aria-current={each === entry ? 'page' : undefined}>
                  {each.name}
                </a>
              </li>
            ))}
          </ul>
        </nav>
        <SignOut />
      </header>
      <main ref={main} tabIndex={-1}>
        {Screen ? <Screen key={path.join('/')} id={id ?? ''} params={params} /> : <Nothing can={can} />}
      </main>
    </Rights.Provider>
  );
}

const Nothing = ({ can }: { can: Can }) => (
  <>
    <h1>{can('read') ? 'There is no such page' : 'This API key cannot read'}</h1>
    <p>
      {can('read')
        ? 'Choose a screen above.'
        : 'The console shows what a key with the scope read can see. Sign out, and sign in with another key.'}
    </p>
  </>
);

/** Reloads, so that the page keeps nothing of the session in memory. */
const leave = () => signOut().finally(() => location.reload());

const SignOut = () => (
  <button type="button" class="quiet" onClick={leave}>
    Sign out
  </button>
);

/** The API key goes to the issuer and is not kept here: the issuer answers with a cookie that no script can read. */
function SignIn() {
  const [error, setError] = useState<Error>();
  const send = async (event: JSX.TargetedSubmitEvent<HTMLFormElement>) => {
    event.preventDefault();
    const form = event.currentTarget;
    const apiKey = String(new FormData(form).get('api_key')).trim();
    try {
      await signIn(apiKey);
      form.reset();
      location.reload();
    } catch (cause) {
      setError(cause as Error);
    }
  };
  return (
    <main class="alone">
      <Page title="Sign in">
        <form onSubmit={send}>
          <Field
            label="API key"
            name="api_key"
            type="password"
            required
            hint="The console can do what this key can do. The browser does not keep it."
          />
          <button type="submit" class="main">
            Sign in
          </button>
        </form>
        {error && <Failed error={error} />}
      </Page>
    </main>
  );
}

const client = new QueryClient({
  // The client library repeats what may be repeated.
  defaultOptions: { queries: { retry: false, staleTime: 10_000 } },
});
addEventListener(SIGNED_OUT, () => client.setQueryData(['limits'], null));

const place = document.getElementById('app');
if (place)
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
    place,
  );
