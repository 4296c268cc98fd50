import { useContext } from 'preact/hooks';
import { useUrl } from '../api/queries.ts';
import { count, money, short, usedOf } from '../data/format/format.ts';
import { isLive, type Url } from '../data/urls.ts';
import { Answer, Page } from '../parts/page/answer.tsx';
import {
  ApiKeyName,
  Facts,
  Fullness,
  Id,
  Json,
  NotLive,
  Status,
  User,
  useName,
  VirtualKeyName,
  When,
} from '../parts/page/facts.tsx';
import { href, hrefOf } from '../parts/page/place.ts';
import { Rights } from '../parts/page/rights.ts';
import { ChangeUrl } from '../parts/tables/change-urls.tsx';
import { figuresOfUrl, providerOfUrl, shareOfUrl } from '../parts/tables/url-table.tsx';

/** One URL: its figures, its limits, and what changes it. */
export function UrlPage({ id }: { id: string }) {
  const url = useUrl(id);
  return (
    <Page title={`URL ${short(id)}`}>
      <Answer of={url}>{(each) => <About url={each} />}</Answer>
    </Page>
  );
}

function About({ url }: { url: Url }) {
  const can = useContext(Rights);
  const { conditions, metadata, shared_budgets: budgets } = url;
  return (
    <>
      {url.live === null && <NotLive />}
      <Facts of={figures(url)} />
      <section class="buttons" aria-label="Change the URL" tabIndex={-1}>
        <a class="button" href={href('requests', { grant_id: url.id })}>
          Calls of this URL
        </a>
        {can('presign') && isLive(url) && <ChangeUrl url={url} />}
      </section>
      <Facts of={issued(url)} />
      {budgets.length > 0 && (
        <>
          <h2>Budgets that its calls draw on</h2>
          <ul>
            {budgets.map((budget) => (
              <li key={budget}>
                <BudgetName id={budget} />
              </li>
            ))}
          </ul>
        </>
      )}
      {conditions && <Json label="Conditions" of={conditions} />}
      {metadata && <Json label="Metadata" of={metadata} />}
    </>
  );
}

const BudgetName = ({ id }: { id: string }) => <a href={hrefOf('limits', id)}>{useName('budget', id)}</a>;

const figures = (url: Url) =>
  [
    ['State', <Status key="state" of={url.status} />],
    ['Full', <Fullness key="full" of="This URL" used={shareOfUrl(url)} most={1} />],
    ['Spent', usedOf(figuresOfUrl(url).spent, url.cost_limit, money)],
    ['Uses', usedOf(figuresOfUrl(url).used, url.max_uses, count)],
    ['Held', money(url.live?.held)],
    ['Ends', <When key="ends" at={url.expires_at} />],
  ] as const;

/** The rate limits that it has, by the names of their fields. */
const rateLimits = (url: Url) =>
  Object.entries(url)
    .filter(([name, most]) => /^(calls|concurrent|tokens)_/.test(name) && typeof most === 'number')
    .map(([name, most]) => [name.replaceAll('_', ' '), count(Number(most))] as const);

const issued = (url: Url) =>
  [
    ['User', <User key="user" of={url.external_user} />],
    ['Provider', providerOfUrl(url)],
    ['Paths', url.paths?.join(', ') ?? '–'],
    ['Models', url.models?.join(', ') ?? 'all'],
    ...rateLimits(url),
    ['Virtual key', <VirtualKeyName key="virtual" id={url.virtual_key} />],
    ['Issued by', <ApiKeyName key="key" id={url.api_key} />],
    ['Issued', <When key="issued" at={url.issued_at} />],
    [
      'Session',
      <a key="session" href={hrefOf('urls', url.session_id)}>
        {url.external_session ?? short(url.session_id)}
      </a>,
    ],
    ['Id', <Id key="id" of={url.id} name="URL id" />],
  ] as const;
