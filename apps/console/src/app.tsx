import type { Limits } from '@presign/client';
import { QueryClient, QueryClientProvider } from '@tanstack/preact-query';
import { type ComponentType, render } from 'preact';
import { SIGNED_OUT } from './api/api.ts';
import { useLimits } from './api/queries.ts';
import { setSession } from './api/session.ts';
import { type NavEntry, Shell } from './frame/shell.tsx';
import { SignIn } from './frame/sign-in.tsx';
import { Issue } from './issue/issue.tsx';
import { KeyPage, Keys } from './keys/keys.tsx';
import { Failed, Waiting } from './parts/page/answer.tsx';
import { Guard } from './parts/page/guard.tsx';
import { NeedsScope } from './parts/page/needs-scope.tsx';
import { filtersIn, type Place, usePlace } from './parts/page/place.ts';
import { type Can, canOf, Rights } from './parts/page/rights.ts';
import { Accounts } from './screens/accounts.tsx';
import { AlertPage, Alerts } from './screens/alerts.tsx';
import { Audit } from './screens/audit.tsx';
import { CustomerPage } from './screens/customer.tsx';
import { Customers } from './screens/customers.tsx';
import { Explore } from './screens/explore.tsx';
import { Home } from './screens/home.tsx';
import { BudgetPage, BudgetsPage } from './screens/limits.tsx';
import { RequestPage } from './screens/request.tsx';
import { Requests } from './screens/requests.tsx';
import { SessionPage } from './screens/session.tsx';
import { UrlPage } from './screens/url.tsx';
import { Urls } from './screens/urls.tsx';
import { Deliveries, Webhooks } from './screens/webhooks.tsx';
import './style.css';
import './frame/frame.css';
import './parts/parts.css';

export function App() {
  const { data: limits, error } = useLimits();
  if (limits === null) return <SignIn />;
  if (limits) return <SignedIn key={limits.api_key.id} limits={limits} />;
  return <main class="alone">{error ? <Failed error={error} /> : <Waiting />}</main>;
}

type Screen = ComponentType<{ id: string; params: Place['params'] }>;
type Entry = NavEntry & {
  readonly scope: Parameters<Can>[0];
  readonly screen: Screen;
  /** The page of one item of the list. */
  readonly one?: Screen;
};

/** `urls/{id}` shows a session, and `urls/url/{id}` shows one URL. */
function UrlOrSession({ id }: { id: string }) {
  const [, , url] = usePlace().path;
  return url === undefined ? <SessionPage id={id} /> : <UrlPage id={url} />;
}

/** The navigation. An entry whose scope the API key lacks is not shown. */
const ENTRIES: readonly Entry[] = [
  { path: '', name: 'Home', group: '', scope: 'read', screen: Home },
  { path: 'customers', name: 'Customers', group: '', scope: 'read', screen: Customers, one: CustomerPage },
  { path: 'requests', name: 'Requests', group: '', scope: 'read', screen: Requests, one: RequestPage },
  { path: 'explore', name: 'Explore', group: '', scope: 'read', screen: Explore },
  { path: 'limits', name: 'Limits', group: 'Control', scope: 'read', screen: BudgetsPage, one: BudgetPage },
  { path: 'alerts', name: 'Alerts', group: 'Control', scope: 'admin', screen: Alerts, one: AlertPage },
  { path: 'urls', name: 'URLs', group: 'Control', scope: 'read', screen: Urls, one: UrlOrSession },
  { path: 'issue', name: 'Issue', group: 'Control', scope: 'presign', screen: Issue, one: Issue },
  { path: 'keys', name: 'Keys', group: 'Developers', scope: 'read', screen: Keys, one: KeyPage },
  {
    path: 'webhooks',
    name: 'Webhooks',
    group: 'Developers',
    scope: 'admin',
    screen: Webhooks,
    one: Deliveries,
  },
  { path: 'audit', name: 'Audit', group: 'Developers', scope: 'read', screen: Audit },
  { path: 'accounts', name: 'Accounts', group: 'Operator', scope: 'operator', screen: Accounts },
];

function SignedIn({ limits }: { limits: Limits }) {
  const { path, params } = usePlace();
  const can = canOf(limits);
  const [first = '', id] = path;
  const entries = ENTRIES.filter(({ scope }) => can(scope));
  // A key without the scope `read` starts on the first page that it may see.
  const entry = entries.find((each) => each.path === first) ?? (first === '' ? entries[0] : undefined);
  const Screen = id === undefined ? entry?.screen : entry?.one;
  return (
    <Rights.Provider value={can}>
      <Shell limits={limits} entries={entries} current={entry} isReader={can('read')}>
        {Screen ? (
          <Guard at={JSON.stringify([path, params])}>
            <Screen key={path.join('/')} id={id ?? ''} params={filtersIn(params)} />
          </Guard>
        ) : (
          <Nothing can={can} lacks={ENTRIES.find(({ path: each, scope }) => each === first && !can(scope))} />
        )}
      </Shell>
    </Rights.Provider>
  );
}

/** Explains why an address has no page. */
function Nothing({ can, lacks }: { can: Can; lacks: Entry | undefined }) {
  if (lacks)
    return (
      <>
        <h1>{lacks.name}</h1>
        <NeedsScope scope={lacks.scope} to="see this page" />
      </>
    );
  return can('read') ? (
    <>
      <h1>There is no such page</h1>
      <p>Choose a screen of the navigation.</p>
    </>
  ) : (
    <>
      <h1>This API key cannot read</h1>
      <p>The console shows what a key with the scope read can see. Sign out, and sign in with another key.</p>
    </>
  );
}

const client = new QueryClient({
  defaultOptions: {
    // The client library already retries what is safe to retry. A browser without a network still reaches an issuer on its own machine. If it
    // reaches none, an error says so, where a paused request would show old figures, and would make a change hours later.
    queries: { retry: false, staleTime: 10_000, networkMode: 'always' },
    mutations: { networkMode: 'always' },
  },
});
addEventListener(SIGNED_OUT, () => setSession(client, null));

const place = document.getElementById('app');
if (place)
  render(
    <QueryClientProvider client={client}>
      <App />
    </QueryClientProvider>,
    place,
  );
