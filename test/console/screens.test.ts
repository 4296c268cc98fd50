import { ledger } from '@presign/schema/ledger-tables';
import { eq, sum } from 'drizzle-orm';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';
import { parseCsv } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, makeCalls, makeRefusals, startConsole } from './console-stack.ts';

/** Everything of the other account has this word in its name. */
const OTHER = 'foreign';

describe.skipIf(!hasChromium)('the console in a browser', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let receiver: Upstream;
  let ui: ConsolePage;
  let account: string;
  let session: string;

  const admin = (method: string, path: string, body?: object, apiKey = stack.apiKey) =>
    fetch(`${stack.issuerUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    receiver = await startUpstream((_seen, response) => void response.writeHead(204).end());
    account = await ownAccount(stack);
    await admin('POST', '/v1/budgets', {
      name: 'Team',
      scope: { external_user: 'adam' },
      cost_limit: 500_000,
      max_uses: 2,
      window: 'month',
    });
    await admin('POST', '/v1/budgets', {
      name: 'Everyone',
      scope: { account: true },
      cost_limit: 25_000_000,
      window: 'month',
    });
    const other = await addAccount(stack);
    const otherKey = await addApiKey(stack, other.id, { scopes: ['admin'], name: `${OTHER} key` });
    await admin(
      'POST',
      '/v1/budgets',
      { name: `${OTHER} budget`, scope: { account: true }, cost_limit: 1 },
      otherKey,
    );
    const { apiKey } = stack;
    session = await makeCalls(stack, { apiKey, user: 'adam' }, 'Why is the sky blue? '.repeat(60), 2);
    await makeCalls(
      stack,
      { apiKey, user: 'grace', model: 'sandbox-mini' },
      'How do planes fly? '.repeat(20),
      3,
    );
    await stack.presign(
      {
        provider: 'sandbox',
        path: '/v1/models',
        client_api_key: 'sk-sandbox',
        external_user: `${OTHER} user`,
      },
      { authorization: `Bearer ${otherKey}` },
    );
    await makeRefusals(stack, { apiKey, user: 'adam' }, 'uses_exhausted', 2);
    await makeRefusals(stack, { apiKey: otherKey, user: `${OTHER} user` }, 'cost_limit_too_low', 3);
    await callsSettled(stack);
    ui = await openConsole(browser, stack);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await receiver?.close();
  });

  const texts = () => ui.page.locator('main').innerText();
  const cells = async (row: string) =>
    (await ui.page.getByRole('row').filter({ hasText: row }).first().getByRole('cell').allInnerTexts()).map(
      (each) => each.trim(),
    );
  const press = (name: string) => ui.page.getByRole('button', { name }).first().click();
  const dialog = () => ui.page.getByRole('dialog');

  /** Checks all that must hold for every screen. */
  async function expectGood(picture?: string, height?: number): Promise<void> {
    await settled(ui.page);
    expect(await texts()).not.toContain(OTHER);
    if (picture) await ui.picture(picture, height);
    expect(await ui.violations()).toEqual([]);
    expect(ui.problems).toEqual([]);
  }

  /** The ledger's sum in microdollars. */
  async function spent(): Promise<number> {
    const [row] = await stack.db
      .select({ cost: sum(ledger.costMicrousd) })
      .from(ledger)
      .where(eq(ledger.accountId, account));
    return Number(row?.cost);
  }
  const dollars = (microusd: number) => `$${(microusd / 1_000_000).toFixed(6).replace(/0{1,4}$/, '')}`;

  test('signs in with the keyboard alone, and scripts can read neither key nor cookie', async () => {
    const { page } = ui;
    expect(await ui.violations()).toEqual([]);
    expect(await page.evaluate('document.activeElement.name')).toBe('api_key');
    expect(await page.locator('main').innerText()).toContain('.presign/sample-api-key');
    await page.keyboard.type('presign_sk_wrong');
    await page.keyboard.press('Enter');
    await page.getByText('This API key is unknown, revoked or expired.').waitFor();
    await page.getByLabel('API key').fill('');
    await page.keyboard.type(stack.apiKey);
    await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Home' }).waitFor();
    const seen = await page.evaluate(
      'JSON.stringify([document.cookie, { ...localStorage }, { ...sessionStorage }, document.documentElement.outerHTML])',
    );
    expect(seen).not.toContain(stack.apiKey);
    expect(JSON.parse(String(seen))[0]).toBe('');
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' });
  });

  test('Home: shows spending, refusals with their reasons, and limits that are nearly used', async () => {
    await ui.open('Home');
    await ui.page
      .getByText(dollars(await spent()), { exact: true })
      .first()
      .waitFor();
    expect(await texts()).toContain('Team');
    await eventually(async () => (await cells('uses exhausted')).at(-1) === '2');
    expect(await texts()).not.toContain('cost limit too low');
    await eventually(async () => (await cells('All customers'))[3] === '5');
    await eventually(async () => /Refused, by days of UTC\n28\.6 %/.test(await texts()));
    expect(
      await ui.page
        .getByRole('img', { name: /Spending of each day/ })
        .locator('canvas')
        .count(),
    ).toBe(1);
    await expectGood();
  });

  test('Explore: the table equals the ledger to the microdollar, and is saved as CSV', async () => {
    await ui.open('Explore');
    const total = dollars(await spent());
    expect((await cells('Total')).at(-1)).toBe(total);
    expect(await texts()).toContain(`Spent\n${total}`);
    const saved = ui.page.waitForEvent('download');
    await press('Download CSV');
    const stream = await (await saved).createReadStream();
    const csv = Buffer.concat(await stream.toArray()).toString();
    expect(csv).toContain('sandbox-mini');
    const [head = [], ...groups] = parseCsv(csv);
    const costs = groups.map((group) => Number(group[head.indexOf('cost')]));
    expect(costs.reduce((all, cost) => all + cost, 0)).toBe(await spent());
    await ui.page.getByLabel('Sum by').selectOption('external_user');
    await ui.page.getByRole('link', { name: 'grace' }).waitFor();
    expect((await cells('Total')).at(-1)).toBe(total);
    // Over her budget.
    expect((await cells('adam'))[0]).toBe('2');
    const ofAda = (await cells('adam')).at(-1);
    await expectGood('explore', 560);
    await ui.open('Limits');
    await eventually(async () => (await cells('Team'))[3] === ofAda);
    const [, , , , , resets, held, uses, , window] = await cells('Team');
    expect([window, held, uses]).toEqual(['month', '$0.00', '2 of 2']);
    expect(resets).not.toBe('–');
  });

  test('Limits: a limit is raised in place, and a stale page cannot overwrite it', async () => {
    await ui.open('Limits');
    expect((await cells('Team'))[4]).toBe('$0.50');
    await press('Change Team');
    await dialog().getByLabel('Limit in dollars').fill('0.75');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await eventually(async () => (await cells('Team'))[4] === '$0.75');
    const list = (await (await admin('GET', '/v1/budgets')).json()) as {
      data: { id: string; name: string; cost_limit: number }[];
    };
    const team = list.data.find(({ name }) => name === 'Team');
    expect(team?.cost_limit).toBe(750_000);
    await expectGood('limits', 420);
    await press('Change Team');
    await admin('PATCH', `/v1/budgets/${team?.id}`, { cost_limit: 800_000 });
    // The page behind the dialog has read the change. The form has not.
    await eventually(async () =>
      (await ui.page.locator('tr', { hasText: 'Team' }).first().innerText()).includes('$0.80'),
    );
    await dialog().getByLabel('Limit in dollars').fill('0.1');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().getByRole('alert').waitFor();
    await dialog().getByRole('button', { name: 'Cancel' }).click();
    await eventually(async () => (await cells('Team'))[4] === '$0.80');
  });

  test('Requests: the list can be filtered by user, and the cost lines of a call add up to its charge', async () => {
    await ui.open('Requests');
    await ui.page.getByRole('row').nth(5).waitFor();
    await expectGood('requests', 560);
    expect(
      (await ui.page.getByRole('navigation', { name: 'Outcomes' }).innerText()).split(
        /\s*\n\s*|\s(?=\w+ \d)/,
      ),
    ).toEqual(expect.arrayContaining(['all 7', 'passed 5', 'failed 0', 'refused 2']));
    await ui.page.getByLabel('User').fill('adam');
    // Two calls that passed, and two that were refused.
    await eventually(async () => (await ui.page.getByRole('row').count()) === 5);
    await ui.page.getByLabel('Outcome', { exact: true }).selectOption('passed');
    await eventually(async () => (await ui.page.getByRole('row').count()) === 3);
    await ui.page.getByRole('row').nth(1).getByRole('rowheader').getByRole('link').click();
    await ui.page.getByRole('heading', { name: 'From hold to charge' }).waitFor();
    await settled(ui.page);
    await ui.page.getByText('$0.15 a million').waitFor();
    const charged = (await cells('Charged')).at(-1);
    expect((await cells('Sum, rounded up')).at(-1)).toBe(charged);
    await expectGood('request', 640);
  });

  test('Requests: are listed for one day from its sum, and for a typed period', async () => {
    const { page } = ui;
    await ui.open('Explore');
    await page.getByLabel('Sum by').selectOption('day');
    const day = page.getByRole('link', { name: /^\d{4}-\d\d-\d\d$/ }).first();
    const calls = (await cells(await day.innerText()))[0];
    await day.click();
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    await settled(page);
    await page.getByLabel('Outcome', { exact: true }).selectOption('passed');
    await eventually(async () => (await page.getByRole('row').count()) === Number(calls) + 1);
    expect(await page.getByLabel('From').inputValue()).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/);
    await page.getByLabel('From').fill('');
    await page.getByLabel('Until').fill('2026-01-31T12:00');
    await page.getByText('No call fits.').waitFor();
  });

  test('Limits: a budget for metadata is created and deleted', async () => {
    await ui.open('Limits');
    await press('Create a budget');
    await dialog().getByLabel('Name').fill('Blue');
    await dialog().getByLabel('Covers').selectOption('metadata');
    await dialog().getByLabel('Limit in dollars').fill('3');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().getByRole('alert').waitFor();
    await dialog().getByLabel('Which').fill('team=blue');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().waitFor({ state: 'hidden' });
    await eventually(async () => (await cells('Blue'))[0] === 'URLs with metadata: team blue');
    await press('Delete Blue');
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await dialog().waitFor({ state: 'hidden' });
    const inTable = (name: string) =>
      ui.page.getByRole('table', { name, exact: true }).getByRole('rowheader').allInnerTexts();
    await eventually(async () => (await inTable('Deleted budgets')).join() === 'Blue (deleted)');
    expect((await inTable('Shared budgets')).sort()).toEqual(['Everyone', 'Team']);
    expect(await ui.page.getByRole('button', { name: /Blue/ }).count()).toBe(0);
  });

  test('URLs: shows live figures, extends a URL, and revokes it at the gateway', async () => {
    await ui.open('URLs');
    await ui.page.getByRole('row').nth(2).waitFor();
    await expectGood();
    await ui.page.goto(`${stack.consoleUrl}#/urls/${session}`);
    await ui.page.getByRole('button', { name: /^Extend/ }).waitFor();
    expect(await texts()).toContain('2 of 50');
    await expectGood('session', 520);
    await press('Extend');
    await dialog().getByRole('button', { name: 'Extend' }).click();
    const field = dialog().getByLabel('The URL with the later end');
    const url = await field.inputValue();
    expect(url).toContain('/llm/t/');
    await dialog().getByRole('button', { name: 'Close' }).click();
    await press('Revoke the session');
    await dialog().getByRole('button', { name: 'Revoke' }).click();
    await ui.page.getByText('revoked').first().waitFor();
    const answer = await callOnce(url, 'Hello');
    expect(answer.status).toBe(403);
  });

  test('Keys: an API key with a policy is shown once, and a virtual key is rotated', async () => {
    await ui.open('Keys');
    await press('Create an API key');
    await dialog().getByLabel('Name').fill('Batch jobs');
    await dialog().getByText('As JSON', { exact: true }).click();
    await dialog().getByLabel('The policy as JSON').fill('{"providers": ["sandbox"]}');
    await dialog().getByText('It issues only URLs for sandbox.').waitFor();
    await dialog().getByRole('button', { name: 'Create' }).click();
    const made = await dialog().getByLabel('The new API key').inputValue();
    await dialog().getByRole('button', { name: 'Close' }).click();
    expect((await admin('GET', '/v1/limits', undefined, made)).status).toBe(200);
    expect(await texts()).not.toContain(made);
    await press('Change Batch jobs');
    await dialog().getByRole('button', { name: 'Remove sandbox' }).click();
    await dialog().getByLabel('Providers').fill('openai');
    await dialog().getByRole('button', { name: 'Save' }).click();
    await dialog().waitFor({ state: 'hidden' });
    const judged = await admin('POST', '/v1/presign', { ...CHAT, client_api_key: 'sk-sandbox' }, made);
    expect(await judged.json()).toMatchObject({ error: { code: 'policy_forbids' } });
    await press('Create a virtual key');
    await dialog().getByLabel('Name').fill('Production');
    await dialog().getByLabel('Provider', { exact: true }).fill('sandbox');
    await dialog().getByLabel('Provider key').fill('sk-sandbox-1');
    await dialog().getByRole('button', { name: 'Create' }).click();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await press('Rotate Production');
    await dialog().getByLabel('New provider key').fill('sk-sandbox-2');
    await dialog().getByRole('button', { name: 'Rotate' }).click();
    await eventually(async () => (await cells('Production'))[5] === '2');
    await expectGood('keys');
  });

  test('Keys: a revoked API key and the URLs of a deleted virtual key are refused at once', async () => {
    const made = await admin('POST', '/v1/api-keys', { name: 'Night jobs', scopes: ['read'] });
    const { key } = (await made.json()) as { key: string };
    const stored = await admin('POST', '/v1/virtual-keys', {
      name: 'Staging',
      provider: 'sandbox',
      key: 'sk-sandbox-3',
    });
    const { id } = (await stored.json()) as { id: string };
    const issued = await admin('POST', '/v1/presign', { ...CHAT, virtual_key: id });
    const { url } = (await issued.json()) as { url: string };
    expect((await callOnce(url, 'Hello')).status).toBe(200);
    await ui.open('Keys');
    await ui.page.reload();
    await press('Revoke Night jobs');
    await dialog().getByRole('button', { name: 'Revoke' }).click();
    await dialog().waitFor({ state: 'hidden' });
    await eventually(async () => (await cells('Night jobs')).includes('revoked'));
    expect((await admin('GET', '/v1/limits', undefined, key)).status).toBe(401);
    await press('Delete Staging');
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await dialog().waitFor({ state: 'hidden' });
    await eventually(async () => (await texts()).includes('Staging (deleted)'));
    expect(await ui.page.getByRole('button', { name: /Staging/ }).count()).toBe(0);
    const refused = await callOnce(url, 'Hello');
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({ error: { code: 'grant_revoked' } });
  });

  test('Keys: the dialog of a pending deletion stays open until you close it', async () => {
    await admin('POST', '/v1/virtual-keys', { name: 'Canary', provider: 'sandbox', key: 'sk-sandbox-4' });
    await ui.page.reload();
    // The issuer answers so without Redis, when it has stored the deletion.
    await ui.page.route('**/v1/virtual-keys/*', async (route) => {
      await route.fetch();
      await route.fulfill({ status: 202, json: { status: 'pending' } });
    });
    await press('Delete Canary');
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await dialog().getByText('It takes effect as soon as Redis answers.').waitFor();
    expect(await texts()).not.toContain('Canary (deleted)');
    await dialog().getByRole('button', { name: 'Close' }).click();
    await eventually(async () => (await texts()).includes('Canary (deleted)'));
    const focused = ui.page.locator('section.scroll:focus');
    expect(await focused.getByText('Canary (deleted)').count()).toBe(1);
    await ui.page.unroute('**/v1/virtual-keys/*');
  });

  test('Webhooks: events are chosen, the secret is rotated, and a test event is delivered and replayed', async () => {
    const stored = async () => {
      const list = (await (await admin('GET', '/v1/webhooks')).json()) as {
        data: { id: string; events: string[] | null }[];
      };
      return list.data[0];
    };
    await ui.open('Webhooks');
    await press('Add a webhook');
    await dialog().getByLabel('URL').fill(`${receiver.url}/events`);
    await dialog().getByLabel('grant.revoked').check();
    await dialog().getByRole('button', { name: 'Add' }).click();
    const secret = await dialog().getByLabel('The secret that signs its events').inputValue();
    await dialog().getByRole('button', { name: 'Close' }).click();
    expect((await stored())?.events).toEqual(['grant.revoked']);
    await press('Change');
    await dialog().getByLabel('audit.entry').check();
    await dialog().getByRole('button', { name: 'Save' }).click();
    await eventually(async () => (await cells('/events'))[1] === 'grant.revoked, audit.entry');
    await press('Change');
    for (const type of ['grant.revoked', 'audit.entry']) await dialog().getByLabel(type).uncheck();
    await dialog().getByRole('button', { name: 'Save' }).click();
    await eventually(async () => (await stored())?.events === null);
    await press('Rotate');
    await dialog().getByRole('button', { name: 'Rotate' }).click();
    const rotated = await dialog().getByLabel('The new secret that signs its events').inputValue();
    expect(rotated).toMatch(/^whsec_/);
    expect(rotated).not.toBe(secret);
    await dialog().getByRole('button', { name: 'Close' }).click();
    await press('Send a test');
    await dialog().getByRole('button', { name: 'Send' }).click();
    await dialog().waitFor({ state: 'hidden' });
    await expectGood('webhooks');
    await ui.page.getByRole('link', { name: `${receiver.url}/events` }).click();
    await ui.page.getByRole('table').getByText('delivered', { exact: true }).first().waitFor();
    const before = receiver.seen.length;
    await press('Replay webhook.test');
    await dialog().getByRole('button', { name: 'Replay' }).click();
    await dialog().waitFor({ state: 'hidden' });
    await eventually(async () => receiver.seen.length > before);
    await expectGood('deliveries');
  });

  test('Audit: shows every change made above, and who made it', async () => {
    await ui.open('Audit');
    await ui.page.getByRole('table').getByText('webhook created').first().waitFor();
    for (const action of ['API key created', 'virtual key rotated', 'budget changed'])
      expect(await texts()).toContain(action);
    await expectGood();
  });

  test('Accounts: one is created, limited, suspended, resumed and deleted, and shows the sums of its calls', async () => {
    await ui.open('Accounts');
    await press('Create an account');
    await dialog().getByLabel('Name').fill('Initech');
    await dialog().getByLabel('Dollars of a URL at most').fill('5');
    await dialog().getByRole('button', { name: 'Create' }).click();
    const key = await dialog().getByLabel('Its first API key, with the scope admin').inputValue();
    await dialog().getByRole('button', { name: 'Close' }).click();
    await makeCalls(stack, { apiKey: key, user: 'bill' }, 'Where are the reports?', 2);
    await callsSettled(stack);
    await ui.page.reload();
    await eventually(async () => (await cells('Initech')).slice(3, 6).join() === '2,1,1');
    expect((await cells('Initech'))[7]).toBe('$5.00 a URL');
    expect((await cells('Initech'))[1]).toMatch(/^\$0\.0\d+$/);
    expect(await texts()).not.toContain('bill');
    await expectGood('accounts');
    const asked = async () => (await admin('GET', '/v1/limits', undefined, key)).status;
    expect(await asked()).toBe(200);
    for (const [button, status, shown] of [
      ['Suspend', 403, 'suspended'],
      ['Resume', 200, 'active'],
    ] as const) {
      await press(`${button} Initech`);
      await dialog().getByRole('button', { name: button }).click();
      await eventually(async () => (await cells('Initech'))[0] === shown);
      expect(await asked()).toBe(status);
    }
    await press('Delete Initech');
    await dialog().getByLabel('Type Initech to delete it').fill('Initec');
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await dialog().getByText('Name: expected Initech.').waitFor();
    await dialog().getByLabel('Type Initech to delete it').fill('Initech');
    await dialog().getByRole('button', { name: 'Delete' }).click();
    await eventually(async () => (await cells('Initech'))[0] === 'deleted');
    expect(await asked()).toBe(401);
  });

  test('with the keyboard alone: a page and a dialog are opened, and closing the dialog focuses its button again', async () => {
    const { page } = ui;
    await ui.open('Home');
    await page.getByRole('link', { name: 'Limits', exact: true }).first().focus();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { level: 1, name: 'Limits' }).waitFor();
    await eventually(async () => (await page.evaluate('document.activeElement.tagName')) === 'H1');
    await settled(page);
    await page.getByRole('button', { name: 'Create a budget' }).focus();
    await page.keyboard.press('Enter');
    await dialog().waitFor();
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'hidden' });
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Create a budget');
  });

  test('signs out, and the Back button shows no figure', async () => {
    await ui.open('Explore');
    await press('Sign out');
    await ui.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    await ui.page.goBack();
    await ui.page.reload();
    await ui.page.getByRole('heading', { name: 'Sign in' }).waitFor();
    expect(await ui.page.locator('body').innerText()).not.toContain('$');
  });

  test('a key with the scope read alone sees figures and no button that changes anything', async () => {
    const own = await openConsole(browser, stack);
    await signIn(own, await addApiKey(stack, account, { scopes: ['read'], name: 'reader' }));
    expect(await own.page.getByRole('link', { name: 'Webhooks' }).count()).toBe(0);
    for (const name of ['Customers', 'Limits', 'URLs', 'Keys']) {
      await own.open(name);
      expect(await own.page.getByRole('button', { name: /Create|Change|Revoke|Extend|Rotate/ }).count()).toBe(
        0,
      );
    }
    await own.page.context().close();
  });

  test('on a phone, the other account sees its own figures alone', async () => {
    const own = await openConsole(browser, stack, { viewport: { width: 390, height: 844 }, hasTouch: true });
    const { id } = await addAccount(stack);
    await signIn(own, await addApiKey(stack, id, { scopes: ['admin'] }));
    for (const name of [
      ...['Customers', 'Limits', 'Alerts', 'URLs', 'Requests', 'Explore', 'Keys', 'Webhooks', 'Audit'],
    ]) {
      await own.open(name);
      const shown = await own.page.locator('main').innerText();
      for (const foreign of ['adam', 'grace', 'Team', 'Production', session.slice(0, 8)])
        expect(shown).not.toMatch(new RegExp(`\\b${foreign}\\b`));
    }
    expect(own.problems).toEqual([]);
    await own.page.context().close();
  });
});
