import type { openKeptChromium } from '@presign/test/harness/chromium.ts';
import type { Filled } from './console-data.ts';

type Context = Awaited<ReturnType<typeof openKeptChromium>>;
type Page = Awaited<ReturnType<Context['newPage']>>;

/** Each screen, and its address behind the `#`. */
export const screensOf = ({ request, user }: Filled): Readonly<Record<string, string>> => ({
  Home: '',
  Customers: 'customers',
  'A customer': `customers/${user}`,
  Requests: 'requests',
  'Requests of a customer': `requests?external_user=${user}`,
  'Requests of a model with few calls': 'requests?model=rare',
  'A request': `requests/${request}`,
  Explore: 'explore',
  'Explore by user': 'explore?by=external_user',
  Limits: 'limits',
  URLs: 'urls',
  'URLs of a customer': `urls?external_user=${user}`,
  Issue: 'issue',
  Keys: 'keys',
  Webhooks: 'webhooks',
  Audit: 'audit',
  Alerts: 'alerts',
  Accounts: 'accounts',
});

/** Signs in, in the browser's own context, whose cookies each page of it has. */
export async function signIn(page: Page, consoleUrl: string, apiKey: string): Promise<void> {
  await page.goto(consoleUrl);
  await page.getByLabel('API key').fill(apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('navigation', { name: 'Screens' }).waitFor();
}

/** How one opening of a screen went, in milliseconds. */
export type Opened = {
  /** From the beginning of the navigation until the page is whole. */
  readonly ms: number;
  readonly requests: number;
  /** All requests of the API together, and the longest. */
  readonly allMs: number;
  readonly longestMs: number;
};

/** How long nothing may happen before a page counts as whole. The time ends before it. */
const QUIET_MS = 400;
const LOOK_MS = 20;
const LONGEST_MS = 60_000;

/** Opens a screen in a new tab, as a link from elsewhere does. The tab is closed. */
export async function openScreen(context: Context, address: string): Promise<Opened> {
  const page = await context.newPage();
  let underWay = 0;
  let last = performance.now();
  const change = (by: number) => () => {
    underWay += by;
    last = performance.now();
  };
  page.on('request', change(1));
  page.on('requestfinished', change(-1));
  page.on('requestfailed', change(-1));
  const began = performance.now();
  await page.goto(address);
  let whole = Number.NaN;
  for (;;) {
    const isWhole = underWay === 0 && (await page.evaluate(IS_WHOLE));
    const now = performance.now();
    if (!isWhole) whole = Number.NaN;
    else if (Number.isNaN(whole) || last > whole) whole = now;
    else if (now - whole >= QUIET_MS) break;
    if (now - began > LONGEST_MS) throw new Error(`${address} is not whole after ${LONGEST_MS} ms`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
  const times = (await page.evaluate(API_TIMES)) as number[];
  await page.close();
  return {
    ms: whole - began,
    requests: times.length,
    allMs: times.reduce((sum, ms) => sum + ms, 0),
    longestMs: Math.max(0, ...times),
  };
}

/** Its figures are there, and no part of it waits. */
const IS_WHOLE = `document.querySelector('h1') !== null && !document.body.innerText.includes('Loading…')`;
const API_TIMES = `performance.getEntriesByType('resource').filter(({ name }) => name.includes('/v1/')).map(({ duration }) => duration)`;
