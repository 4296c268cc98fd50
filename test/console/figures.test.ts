import { randomUUID } from 'node:crypto';
import { ledger } from '@presign/schema/ledger-tables';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { addApiKey, ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, makeCalls, startConsole } from './console-stack.ts';

/** A script for every place that shows a name as HTML. */
const SCRIPT = '<img src=x onerror="document.title=1">';
const LONG = 'n'.repeat(255);
const MOST = Number.MAX_SAFE_INTEGER;

describe.skipIf(!hasChromium)('the figures of the console', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: ConsolePage;
  let session: string;
  let account: string;
  const mcpCall = randomUUID();
  const pricedCall = randomUUID();

  const admin = async (method: string, path: string, body?: object): Promise<Listed> => {
    const answer = await fetch(`${stack.issuerUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(answer.ok, await answer.clone().text()).toBe(true);
    return JSON.parse((await answer.text()) || '{}') as Listed;
  };
  type Listed = { data: { id: string; name: string; cost_limit: number; revoked_at: number | null }[] };

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    account = await ownAccount(stack);
    const budget = { window: 'month', cost_limit: 1_000_000 };
    await admin('POST', '/v1/budgets', { ...budget, name: 'Team', scope: { external_user: 'adam' } });
    await admin('POST', '/v1/budgets', { ...budget, name: SCRIPT, scope: { external_user: SCRIPT } });
    await admin('POST', '/v1/budgets', { ...budget, name: LONG, scope: { external_user: LONG } });
    const most = { name: 'Most', scope: { metadata: { plan: SCRIPT } }, cost_limit: MOST };
    await admin('POST', '/v1/budgets', { ...budget, ...most });
    const { apiKey } = stack;
    session = await makeCalls(stack, { apiKey, user: 'adam' }, 'Why is the sky blue? '.repeat(60), 2);
    await makeCalls(stack, { apiKey, user: 'adam', model: 'sandbox-mini' }, 'How do planes fly?', 1);
    await makeCalls(stack, { apiKey, user: SCRIPT }, 'Hello', 1);
    await addApiKey(stack, account, { name: 'Old', expiresAt: new Date(Date.now() - 1_000) });
    await callsSettled(stack);
    const of = { issuerUrl: stack.issuerUrl, apiKey, account };
    const names = [null, 'none', 'others', 'u1', 'u2', 'u3', 'u4', 'u5'];
    const rows = names.map((externalUser, at) =>
      row(of, { externalUser, costMicrousd: 1_000 * (20 - at), model: SCRIPT, settledAt: new Date() }),
    );
    const settledAt = new Date();
    const mcp = { requestId: mcpCall, provider: 'mcp', model: null, server: SCRIPT, tool: 'add', settledAt };
    const priced = { requestId: pricedCall, model: 'm', inputTokens: 1_207, outputTokens: 300, settledAt };
    await stack.db.insert(ledger).values([
      ...rows,
      row(of, { ...mcp, uses: 2, costMicrousd: 10_000, priceLines: [['calls', 2, 5_000]] }),
      row(of, { ...mcp, uses: -1, costMicrousd: -5_000, outcome: 'refunded' }),
      row(of, {
        ...priced,
        ...{ heldMicrousd: 10_000, costMicrousd: 10_000, overrunMicrousd: 361 },
        priceLines: [
          ['input_tokens', 1_200, 150_000],
          ['cache_read_tokens', 7, 37_500],
          ['output_tokens', 300, 600_000],
          ['web_searches', 1, 10_000],
        ],
      }),
    ]);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const texts = () => ui.page.locator('main').innerText();
  const cells = async (name: string) =>
    (await ui.page.getByRole('row').filter({ hasText: name }).first().getByRole('cell').allInnerTexts()).map(
      (each) => each.trim(),
    );
  const totals = async (page: Page) =>
    (
      await page.getByRole('row').filter({ hasText: 'Total' }).first().getByRole('cell').allInnerTexts()
    ).join();
  const press = (name: string) => ui.page.getByRole('button', { name }).first().click();
  const dialog = () => ui.page.getByRole('dialog');
  /** Waits for the answer of a changed question. */
  const loaded = async (heading: string) => {
    await ui.page.getByRole('heading', { level: 1, name: heading }).waitFor();
    await settled(ui.page);
  };

  test('the fields of a filter show the active filter, also after a link and the Back button', async () => {
    const { page } = ui;
    await ui.open('URLs');
    await page.getByLabel('User').fill('adam');
    await page.getByLabel('State', { exact: true }).selectOption('active');
    await eventually(async () => (await page.getByRole('row').count()) === 3);
    await ui.open('URLs');
    await eventually(async () => (await page.getByRole('row').count()) === 4);
    expect(await page.getByLabel('User').inputValue()).toBe('');
    expect(await page.getByLabel('State', { exact: true }).inputValue()).toBe('');
    await page.goBack();
    await eventually(async () => (await page.getByLabel('User').inputValue()) === 'adam');
    expect(await page.getByLabel('State', { exact: true }).inputValue()).toBe('active');
    await eventually(async () => (await page.getByRole('row').count()) === 3);
  });

  test('the link of a usage row opens exactly the calls of the row', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/explore?by=external_user&model=sandbox-mini`);
    await page.getByRole('link', { name: 'adam', exact: true }).waitFor();
    const cost = (await cells('adam')).at(-1) ?? '';
    await page.getByRole('link', { name: 'adam', exact: true }).click();
    await page.getByRole('columnheader', { name: /^day/ }).waitFor();
    expect((await cells('Total')).at(-1)).toBe(cost);
    expect(await page.getByLabel('User').inputValue()).toBe('adam');
    expect(await page.getByLabel('Model').inputValue()).toBe('sandbox-mini');
  });

  test('a filter by API key stays visible and active when another filter is added', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/explore?by=api_key`);
    const key = page.getByRole('rowheader').getByRole('link').first();
    const id = /api_key=([0-9a-f-]{36})/.exec((await key.getAttribute('href')) ?? '')?.[1] ?? '';
    // The name of the key, and not its id.
    await eventually(async () => (await key.innerText()) === 'bootstrap');
    await key.click();
    await eventually(async () => (await page.getByLabel('API key', { exact: true }).inputValue()) === id);
    await page.getByLabel('User').fill('adam');
    await page.waitForURL(/external_user=adam/);
    expect(page.url()).toContain(id);
  });

  test('text typed right after the fields follow the address is kept', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/explore?by=model`);
    await page.getByLabel('User').waitFor();
    // Types in the same turn in which the field of the changed filter shows it, before the next frame.
    const typed = page.evaluate(`new Promise((done) => {
      const [user, model] = ['external_user', 'model'].map((name) => document.querySelector('input[name=' + name + ']'));
      const look = () => {
        if (model.value !== 'm') return setTimeout(look);
        user.value = 'adam';
        requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(() => done(user.value))));
      };
      look();
      location.hash = '#/explore?by=model&model=m';
    })`);
    expect(await typed).toBe('adam');
  });

  test('users with the names of chart groups are separate groups', async () => {
    const { page } = ui;
    await page.goto(`${stack.consoleUrl}#/explore?by=external_user`);
    await page.getByRole('link', { name: 'others', exact: true }).waitFor();
    const legend = page.getByRole('figure').getByRole('listitem');
    await eventually(async () => (await legend.count()) === 6);
    const names = (await legend.allInnerTexts()).map((each) => each.trim());
    expect(names).toEqual(['none', 'none', 'others', 'u1', 'u2', 'others']);
    expect(await page.getByRole('rowheader', { name: 'none', exact: true }).count()).toBe(2);
  });

  test('the largest amount is saved exactly as it was loaded', async () => {
    await ui.open('Limits');
    expect(await cells('Most')).toContain('$9,007,199,254.740991');
    await press('Change Most');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().waitFor({ state: 'hidden' });
    const { data } = await admin('GET', '/v1/budgets');
    expect(data.find(({ name }) => name === 'Most')?.cost_limit).toBe(MOST);
    await press('Change Most');
    await dialog().getByLabel('Limit in dollars').fill('9007199254.740992');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().getByRole('alert').getByText('expected dollars up to').waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
  });

  test('a long name does not push the other columns out of reach', async () => {
    const { page } = ui;
    await ui.open('Limits');
    await page.getByRole('rowheader', { name: LONG }).waitFor();
    for (const name of await page.getByRole('rowheader').all())
      expect((await name.boundingBox())?.width).toBeLessThan(400);
    expect(await ui.violations()).toEqual([]);
  });

  test('a form that is submitted twice at once creates one key', async () => {
    await ui.open('Keys');
    await press('Create an API key');
    await dialog().getByLabel('Name').fill('Twice');
    const form = 'document.querySelector("dialog[open] form")';
    await ui.page.evaluate(`${form}.requestSubmit(); ${form}.requestSubmit()`);
    await dialog().getByLabel('The new API key').waitFor();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await settled(ui.page);
    const { data } = await admin('GET', '/v1/api-keys');
    expect(data.filter(({ name }) => name === 'Twice')).toHaveLength(1);
  });

  test('an expired API key is not shown as active', async () => {
    await ui.open('Keys');
    expect((await cells('Old'))[1]).toBe('expired');
  });

  const rowsOfCall = async (requestId: string) => {
    await ui.page.goto(`${stack.consoleUrl}#/requests/${requestId}`);
    await ui.page.getByRole('heading', { name: `Request ${requestId.slice(0, 8)}` }).waitFor();
    await ui.page
      .getByRole('row', { name: /^Charged/ })
      .first()
      .waitFor();
    const price = ui.page.getByRole('table', { name: 'Price of this call' });
    const rows = await price.getByRole('row').allInnerTexts();
    return rows.slice(1).map((each) => each.split('\t').map((cell) => cell.trim()));
  };

  test('the price of a call is itemised: kinds of tokens, fees, and the part above its hold', async () => {
    expect(await rowsOfCall(pricedCall)).toEqual([
      ['Held before the call', '', '', '$0.01'],
      ['Input tokens', '1,200', '$0.15 a million', '$0.00018'],
      ['Cache read tokens', '7', '$0.0375 a million', '$0.0000002625'],
      ['Output tokens', '300', '$0.60 a million', '$0.00018'],
      ['Web searches', '1', '$0.01 each', '$0.01'],
      ['Sum, rounded up', '', '', '$0.010361'],
      ['Above the hold, not charged', '', '', '−$0.000361'],
      ['Charged', '', '', '$0.01'],
    ]);
  });

  test('an MCP call shows the prices of its tools and its refund', async () => {
    expect(await rowsOfCall(mcpCall)).toEqual([
      ['Calls', '2', '$0.005 each', '$0.01'],
      ['Sum, rounded up', '', '', '$0.01'],
      ['Charged at first', '', '', '$0.01'],
      ['Given back', '', '', '−$0.005'],
      ['Charged', '', '', '$0.005'],
    ]);
  });

  test('the page of a call that has just ended shows the call once the ledger has it', async () => {
    const requestId = randomUUID();
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account };
    await ui.page.goto(`${stack.consoleUrl}#/requests/${requestId}`);
    await ui.page.getByText('appears about a second after').waitFor();
    await stack.db.insert(ledger).values(row(of, { requestId, settledAt: new Date() }));
    await ui.page.getByRole('row', { name: /^Charged/ }).waitFor();
  });

  test('an MCP call shows the provider id to filter by, and its server', async () => {
    await ui.page.goto(`${stack.consoleUrl}#/requests?provider=mcp`);
    await loaded('Requests');
    await ui.page
      .getByRole('cell', { name: `mcp: ${SCRIPT}` })
      .first()
      .waitFor();
    await ui.page.goto(`${stack.consoleUrl}#/requests/${mcpCall}`);
    await ui.page.getByText(`mcp: ${SCRIPT}`).waitFor();
  });

  test('a socket turn shows its number and its socket, and an ordinary call shows neither', async () => {
    const requestId = randomUUID();
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account };
    const connectionId = 'c0ffee00-0000-4000-8000-000000000000';
    await stack.db.insert(ledger).values(row(of, { requestId, connectionId, turn: 7 }));
    await rowsOfCall(requestId);
    await ui.page.getByText('turn 7 of c0ffee00').waitFor();
    await rowsOfCall(pricedCall);
    expect(await ui.page.getByText(/^turn \d/).count()).toBe(0);
  });

  test.each([
    ['was charged its hold', { heldMicrousd: 10 }, 'did not report the usage in full'],
    ['was refused', { heldMicrousd: 10, status: 403 }, 'refused the call and may have billed it'],
    ['has a usage without a price', { heldMicrousd: 10, inputTokens: 3, outputTokens: 4 }, 'has no price'],
    ['lost its gateway', { heldMicrousd: 10, outcome: 'expired' }, 'its whole hold is charged'],
    ['was not billed', { costMicrousd: 0, status: 401 }, 'nothing is charged'],
    ['has no known cost', { costMicrousd: null }, 'no limit needed it'],
    [
      'has doubtful counts',
      { inputTokens: 3, outputTokens: 4 },
      'the reported counts contradict each other.',
    ],
    ['is a batch of many prices', { provider: 'mcp', server: 'a' }, 'more than 20 prices'],
  ] as const)('a call without lines says why: it %s', async (_what, fields, why) => {
    const requestId = randomUUID();
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account };
    await stack.db.insert(ledger).values(row(of, { ...fields, requestId, settledAt: new Date() }));
    expect(await rowsOfCall(requestId)).toHaveLength('heldMicrousd' in fields ? 2 : 1);
    expect(await texts()).toContain(why);
  });

  test('a browser whose clock is an hour behind shows the same sums', async () => {
    await ui.open('Explore');
    const own = await openConsole(browser, stack);
    await own.page.clock.install({ time: Date.now() - 3_600_000 });
    await signIn(own, stack.apiKey);
    await own.open('Explore');
    // The end of reports moves on every half minute, in each browser at its own moment.
    await eventually(async () => {
      const [sums, ownSums] = [await totals(ui.page), await totals(own.page)];
      return sums !== '' && sums === ownSums;
    });
    await own.page.context().close();
  });

  test('an API key links to its URL, its session and their calls; a URL’s page updates its calls, and a session’s page revokes one URL', async () => {
    const { page } = ui;
    const apiKey = await addApiKey(stack, account, { name: 'Backend', scopes: ['presign'] });
    const issued = await stack.presign(
      { ...CHAT, client_api_key: 'sk-sandbox', external_user: 'linus', max_uses: 50 },
      { authorization: `Bearer ${apiKey}` },
    );
    const { url } = (await issued.json()) as { url: string };
    const rows = page.getByRole('row');
    // A list that was read within ten seconds is shown again as it was.
    await page.reload();
    await ui.open('Keys');
    await page.getByRole('link', { name: 'Backend', exact: true }).click();
    await page.getByRole('link', { name: 'URLs that it issued' }).click();
    await loaded('URLs');
    await eventually(async () => (await rows.count()) === 2);
    await rows.nth(1).getByRole('link').first().click();
    await page.getByText('0 of 50').waitFor();
    expect((await callOnce(url, 'Hello')).status).toBe(200);
    await page.getByText('1 of 50').waitFor();
    await callsSettled(stack);
    const id = (await page.getByRole('heading', { level: 1 }).innerText()).replace('URL ', '');
    await page.locator('dl > div', { hasText: 'Session' }).getByRole('link').click();
    await page.getByRole('link', { name: 'Requests of this session' }).click();
    await loaded('Requests');
    await eventually(async () => (await rows.count()) === 2 && (await texts()).includes('linus'));
    await page.goBack();
    const ofUrl = page.getByRole('table', { name: 'URLs of this session' }).getByRole('row').nth(1);
    await ofUrl.getByRole('link', { name: 'Calls' }).click();
    await loaded('Requests');
    await eventually(async () => (await page.getByLabel('URL (id)').inputValue()).startsWith(id));
    await eventually(async () => (await rows.count()) === 2);
    await page.goBack();
    await ofUrl.getByRole('button', { name: /^Revoke/ }).click();
    await dialog().getByRole('button', { name: 'Revoke' }).click();
    await ofUrl.getByText('revoked', { exact: true }).waitFor();
    expect((await callOnce(url, 'Hello')).status).toBe(403);
  });

  test('a budget for metadata covers exactly the key and the value, without surrounding spaces', async () => {
    await ui.open('Limits');
    await press('Create a budget');
    await dialog().getByLabel('Name').fill('Blue');
    await dialog().getByLabel('Covers').selectOption('metadata');
    expect(await dialog().innerText()).toContain('It limits URLs that are issued from now on.');
    await dialog().getByLabel('Limit in dollars').fill('3');
    await dialog().getByLabel('Which').fill('team = ');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().getByRole('alert').getByText('such as team=blue').waitFor();
    await dialog().getByLabel('Which').fill(' team = blue ');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().waitFor({ state: 'hidden' });
    const { data } = (await admin('GET', '/v1/budgets')) as unknown as {
      data: { name: string; scope: object }[];
    };
    expect(data.find(({ name }) => name === 'Blue')?.scope).toEqual({ metadata: { team: 'blue' } });
  });

  test('a budget for an API key is created with the name of the key', async () => {
    await ui.open('Limits');
    await press('Create a budget');
    await dialog().getByLabel('Name').fill('Of a key');
    await dialog().getByLabel('Covers').selectOption('api_key');
    await dialog().getByLabel('Which').fill('Old');
    await dialog().getByLabel('Uses').fill('5');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().waitFor({ state: 'hidden' });
    await ui.page.getByRole('link', { name: 'Old', exact: true }).waitFor();
    expect((await cells('Of a key'))[0]).toBe('API key Old');
  });

  test('the audit log links from a change to all changes of the same thing', async () => {
    await ui.open('Audit');
    await ui.page.getByRole('row').filter({ hasText: 'budget changed' }).first().waitFor();
    const { data } = await admin('GET', '/v1/budgets');
    const id = data.find(({ name }) => name === 'Most')?.id ?? '';
    await ui.page.getByRole('link', { name: 'its changes (Most)' }).first().click();
    await loaded('Audit');
    await eventually(async () => (await ui.page.getByLabel('target id').inputValue()) === id);
    await eventually(async () => (await ui.page.getByRole('row').count()) === 3);
  });

  test('names are shown as text and never as markup', async () => {
    for (const name of ['Home', 'Customers', 'Limits', 'URLs', 'Requests', 'Explore', 'Keys', 'Audit']) {
      await ui.open(name);
      expect(await ui.page.locator('main img').count(), name).toBe(0);
    }
    await ui.open('Requests');
    await ui.page.getByText(SCRIPT).first().waitFor();
    expect(ui.problems).toEqual([]);
  });

  test('the price of a call fits on a phone', async () => {
    const { page } = ui;
    const calls = (await admin('GET', '/v1/calls?external_user=adam')) as unknown as {
      data: { request_id: string }[];
    };
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(`${stack.consoleUrl}#/requests/${calls.data[0]?.request_id}`);
    await page.getByText('a million').first().waitFor();
    const hidden =
      'document.querySelector("section.scroll").scrollWidth - document.querySelector("section.scroll").clientWidth';
    expect(await page.evaluate(hidden)).toBe(0);
    await page.setViewportSize({ width: 1280, height: 800 });
  });

  test('a key that is revoked while its page is open leads to the sign-in page, also from the issuing form', async () => {
    const own = await openConsole(browser, stack);
    const apiKey = await addApiKey(stack, account, { name: 'Short' });
    await own.page.getByLabel('API key').fill(apiKey);
    await own.page.getByRole('button', { name: 'Sign in' }).click();
    await own.page.getByLabel('provider (required)').fill('sandbox');
    await own.page.getByLabel('path (required)').fill('/v1/chat/completions');
    const { data } = await admin('GET', '/v1/api-keys');
    await admin('DELETE', `/v1/api-keys/${data.find(({ name }) => name === 'Short')?.id}`);
    await own.page.getByRole('button', { name: 'Issue', exact: true }).click();
    await own.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await own.page.context().close();
  });

  test('without Redis, the figures of the ledger are shown and labelled, and not zeros', async () => {
    const { page } = ui;
    await ui.open('Limits');
    const [, , , spent = ''] = await cells('Team');
    expect(spent).not.toBe('$0.00');
    stack.redis.disconnect();
    await page.getByText('Redis does not answer').waitFor();
    const without = await cells('Team');
    expect(without[3]).toBe(spent);
    expect(without[6]).toBe('–');
    await page.goto(`${stack.consoleUrl}#/urls/${session}`);
    await page.getByText('Redis does not answer').waitFor();
    expect(await texts()).toContain('2 of 50');
    await ui.open('Home');
    await page.getByText('Redis does not answer. These figures').waitFor();
    expect(await texts()).toContain('Holding money\n–');
  });

  test('without the issuer, a page says so and shows no zero', async () => {
    await stack.issuer.close();
    await ui.page.goto(`${stack.consoleUrl}#/explore?by=provider`);
    await ui.page.getByRole('alert').first().waitFor();
    expect(await texts()).not.toContain('$0.00');
    expect(await texts()).not.toContain('No calls');
  });
});
