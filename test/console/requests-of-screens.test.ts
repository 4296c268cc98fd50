import { createPresign, type Presign } from '@presign/client';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { addAccount } from '../issuer/accounts.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, startConsole } from './console-stack.ts';

const MANY = 30;

describe.skipIf(!hasChromium)('the requests of a screen', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let api: Presign;
  let ui: ConsolePage;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    // Each URL is of a session of its own.
    const body = { ...CHAT, client_api_key: 'sk-sandbox', external_user: 'adam', max_uses: 5 };
    for (let at = 0; at < MANY; at++) await stack.issue(body);
    for (let at = 0; at < MANY; at++) await addAccount(stack);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  /** Opens a screen from an empty page. Returns the requests that it sends until a table has so many rows. */
  const requestsOf = async (place: string, table: string, rows: number) => {
    const asked: string[] = [];
    const note = (request: { url: () => string }) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname.startsWith('/v1/')) asked.push(`${pathname}?${[...searchParams.keys()].sort().join()}`);
    };
    await ui.page.goto('about:blank');
    ui.page.on('request', note);
    await ui.go(place);
    const shown = ui.table(table).locator('tbody tr');
    await eventually(async () => (await shown.count()) === rows);
    await settled(ui.page);
    ui.page.off('request', note);
    return asked;
  };
  const of = (asked: readonly string[], path: RegExp) => asked.filter((each) => path.test(each));

  test('URLs: one for a page of the list, however many sessions it has', async () => {
    const asked = await requestsOf('urls', 'URLs', MANY);
    expect(of(asked, /grants/)).toEqual(['/v1/grants?limit']);
    expect(of(asked, /sessions/)).toEqual([]);
  });

  test('a customer: one for all of its URLs', async () => {
    const asked = await requestsOf('customers/adam', 'URLs of this customer', MANY);
    expect(of(asked, /grants/)).toEqual(['/v1/grants?external_user,limit']);
    expect(of(asked, /sessions/)).toEqual([]);
  });

  test('Accounts: one for a page of the list with what each account uses', async () => {
    const { data } = await api.listAccounts({ limit: 100 });
    const asked = await requestsOf('accounts', 'Accounts', data.length);
    expect(of(asked, /accounts/)).toEqual(['/v1/accounts?include,limit']);
    expect(await ui.page.getByText('not known').count()).toBe(0);
  });

  test('Accounts: the list stays when the figures cannot be summed', async () => {
    await ui.page.route(/v1\/accounts\?.*include/, (route) => {
      const error = { code: 'database_unavailable', message: 'Late.', type: 'api_error', param: null };
      return route.fulfill({ status: 503, json: { error: { ...error, request_id: 'r' } } });
    });
    const { data } = await api.listAccounts({ limit: 100 });
    const asked = await requestsOf('accounts', 'Accounts', data.length);
    expect(of(asked, /accounts/)).toEqual(['/v1/accounts?include,limit', '/v1/accounts?limit']);
    expect(await ui.page.getByText('not known').count()).toBeGreaterThan(MANY);
    await ui.page.unrouteAll();
  });
});
