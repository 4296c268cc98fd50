import { createPresign, type Presign } from '@presign/client';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, startConsole } from './console-stack.ts';

describe.skipIf(!hasChromium)('links of the console', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  let api: Presign;
  let virtualKey: string;
  let grant: string;
  let session: string;
  let request: string;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const key = { name: 'Production', provider: 'sandbox', key: 'sk-sandbox' };
    // Its one use is spent, so that it is on the first page.
    virtualKey = (await api.createVirtualKey({ ...key, budget: { max_uses: 1 } })).id;
    const scope = { virtual_key: virtualKey };
    await api.createBudget({ name: 'Of the key', scope, max_uses: 1, window: 'month' });
    const issued = await api.presign({
      ...CHAT,
      virtual_key: virtualKey,
      external_user: 'adam',
      max_uses: 1,
    });
    session = issued.session_id;
    const answer = await callOnce(issued.url, 'Hello');
    request = answer.headers.get('x-presign-request-id') ?? '';
    grant = (await api.getSession({ id: session })).grants[0]?.id ?? '';
    await api.changeGrant({ id: grant, max_uses: 2 });
    await api.changeGrant({ id: grant, max_uses: 1 });
    await callsSettled(stack);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const main = () => ui.page.locator('main');
  const fact = (name: string) => main().locator('dl > div', { hasText: name }).getByRole('link');
  const short = (id: string) => id.slice(0, 8);
  /** Presses a link, and expects the page of one thing. */
  const leadsTo = async (link: Locator, heading: string) => {
    await link.click();
    await ui.page.getByRole('heading', { level: 1, name: heading, exact: true }).waitFor();
    await settled(ui.page);
  };

  test('a request links to its URL, session, API key and virtual key', async () => {
    const facts = [
      ['URL', `URL ${short(grant)}`],
      ['Session', `Session ${short(session)}`],
      ['API key', 'bootstrap'],
      ['Virtual key', 'Production'],
    ] as const;
    for (const [name, heading] of facts) {
      await ui.go(`requests/${request}`);
      await leadsTo(
        main()
          .locator('dl > div')
          .filter({ has: ui.page.getByText(name, { exact: true }) })
          .getByRole('link'),
        heading,
      );
    }
  });

  test('an audit entry links to the URL, key or budget that it changed', async () => {
    const entries = [
      ['URL changed', `URL ${short(grant)}`],
      ['virtual key created', 'Production'],
      ['budget created', 'Of the key'],
    ] as const;
    for (const [change, heading] of entries) {
      await ui.go('audit');
      const row = ui.page.getByRole('row').filter({ hasText: change }).first();
      await leadsTo(row.locator('td').first().getByRole('link').first(), heading);
    }
  });

  test('the home page links to a virtual key and a URL that are near their limits', async () => {
    const limits = 'Limits that hold money or are near their end';
    await ui.go('');
    await leadsTo(ui.table(limits).getByRole('link', { name: 'Production', exact: true }), 'Production');
    await ui.go('');
    await leadsTo(
      ui.table(limits).getByRole('link', { name: `${short(grant)} of adam` }),
      `URL ${short(grant)}`,
    );
  });

  test('the page of a URL links to its keys and its budget, and the page of a budget links to its key', async () => {
    await ui.go(`urls/url/${grant}`);
    await leadsTo(fact('Virtual key'), 'Production');
    await ui.go(`urls/url/${grant}`);
    await leadsTo(fact('Issued by'), 'bootstrap');
    await ui.go(`urls/url/${grant}`);
    await leadsTo(main().getByRole('link', { name: 'Of the key' }), 'Of the key');
    await leadsTo(fact('Draws on it'), 'Production');
  });

  test.each([
    ['Production virtual key', 'Production'],
    ['bootstrap API key', 'bootstrap'],
    ['Of the key budget', 'Of the key'],
  ])('the search opens the page of %s', async (option, heading) => {
    await ui.go('audit');
    await ui.page.keyboard.press('Control+K');
    await ui.page.getByRole('combobox', { name: /^Search/ }).fill(heading);
    await leadsTo(ui.page.getByRole('option', { name: option, exact: true }), heading);
  });

  test.each([
    ['a session', () => `urls/${session}`, 'URLs of this session'],
    ['a customer', () => 'customers/adam', 'URLs of this customer'],
  ])('the page of %s lists its URLs with their spending, and links to each', async (_of, place, name) => {
    await ui.go(place());
    const row = ui.table(name).locator('tbody tr');
    await row.getByText('1 of 1').waitFor();
    expect(await row.count()).toBe(1);
    expect(await ui.violations()).toEqual([]);
    await leadsTo(row.getByRole('rowheader').getByRole('link'), `URL ${short(grant)}`);
    expect(ui.problems).toEqual([]);
  });
});
