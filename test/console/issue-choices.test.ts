import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';
import { openConsole } from './console-page.ts';
import { type ConsoleStack, makeCalls, startConsole } from './console-stack.ts';
import { CHAT, type IssueScreen, openIssue } from './issue-screen.ts';

describe.skipIf(!hasChromium)('the choices of the issuing form', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let ui: IssueScreen;

  const send = async (path: string, body: object, apiKey = stack.apiKey) => {
    const answer = await fetch(`${stack.issuerUrl}${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    expect(answer.ok, await answer.clone().text()).toBe(true);
    return (await answer.json()) as { id: string };
  };

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    const budget = (name: string, scope: object) => ({ name, scope, cost_limit: 2_000_000, window: 'month' });
    await send('/v1/budgets', budget('Everyone', { account: true }));
    await send('/v1/budgets', budget('Of Ada', { external_user: 'adam' }));
    await send('/v1/budgets', budget('Of Grace', { external_user: 'grace' }));
    const other = await addAccount(stack);
    const foreign = await addApiKey(stack, other.id, { scopes: ['admin'] });
    await send('/v1/budgets', budget('Foreign', { account: true }), foreign);
    await send('/v1/virtual-keys', { name: 'Foreign key', provider: 'sandbox', key: 'sk-sandbox' }, foreign);
    await send('/v1/virtual-keys', { name: 'Production', provider: 'sandbox', key: 'sk-sandbox' });
    await makeCalls(stack, { apiKey: stack.apiKey, user: 'adam' }, 'Why is the sky blue? '.repeat(40), 2);
    await callsSettled(stack);
    ui = await openIssue(browser, stack);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const optionsOf = (name: string) =>
    ui.of(name, '[...(each.list?.options ?? each.options)].map((option) => option.value)');
  const calls = (model: string) =>
    ui.region('Calls by model').getByRole('row').filter({ hasText: model }).getByRole('cell').last();
  const json = async () => {
    await ui.press('JSON');
    return JSON.parse(await ui.region('The request in JSON').innerText()) as Record<string, unknown>;
  };

  test('provider, path, user, virtual key and models can be chosen, and models show their prices', async () => {
    await ui.form();
    await eventually(async () => ((await optionsOf('provider')) as string[]).includes('sandbox'));
    await eventually(async () => ((await optionsOf('external_user')) as string[]).includes('adam'));
    await ui.fill({ provider: 'sandbox', path: '/v1/chat/completions', external_user: 'adam' });
    await ui.field('virtual_key').locator('option', { hasText: 'Production' }).waitFor({ state: 'attached' });
    expect(await ui.field('virtual_key').innerText()).not.toContain('Foreign');
    const fold = ui.page.locator('details:not([open])', { has: ui.field('virtual_key') });
    if (await fold.count()) await fold.locator('summary').click();
    await ui.field('virtual_key').selectOption({ label: 'Production' });
    const add = ui.page.getByLabel('Add to models');
    const listed = `[...document.querySelector('[aria-label="Add to models"]').list.options].map((each) => each.value + ': ' + each.text)`;
    await eventually(async () =>
      ((await ui.page.evaluate(listed)) as string[]).includes('sandbox-1: $0.15 in, $0.60 out a million'),
    );
    for (const model of ['sandbox-1', 'sandbox-mini']) {
      await add.fill(model);
      await add.press('Enter');
    }
    expect(await json()).toMatchObject({
      ...{ provider: 'sandbox', path: '/v1/chat/completions', external_user: 'adam' },
      ...{ models: ['sandbox-1', 'sandbox-mini'], virtual_key: expect.stringMatching(/^vk_/) },
    });
    await ui.press('Issue');
    await ui.page.getByRole('heading', { name: 'Issued' }).waitFor();
  });

  test('the limit is entered in dollars, and shows how many calls it pays', async () => {
    await ui.form();
    await ui.fill({ ...CHAT, cost_limit: '0.54', max_uses: '' });
    expect(await json()).toMatchObject({ cost_limit: 540_000 });
    await ui.page.getByLabel('Size of a call').selectOption('question');
    await eventually(async () => (await calls('sandbox-1').innerText()).trim() === 'about 2,400');
    await ui.fill({ max_uses: '20' });
    await eventually(async () => (await calls('sandbox-1').innerText()).trim() === 'about 20');
    await ui.page.getByLabel('Size of a call').selectOption('own');
    const size = await ui.page.locator('.beside').innerText();
    expect(size).not.toContain('There were no calls');
    await ui.fill({ cost_limit: '1,5' });
    await ui.press('Issue');
    expect(await ui.page.evaluate('document.activeElement.validationMessage')).toContain('Expected dollars');
  });

  test('exactly the budgets that will apply are shown, with what is left', async () => {
    await ui.form();
    await ui.fill(CHAT);
    const budgets = ui.region('Budgets that will apply');
    await budgets.getByRole('link', { name: 'Of Ada' }).waitFor();
    const text = await budgets.innerText();
    expect(text).toContain('Everyone');
    expect(text).not.toMatch(/Grace|Foreign/);
    expect(text).toMatch(/\$1\.99\d+/);
    await ui.page.evaluate('scrollTo(0, 0)');
    await ui.picture('issue', 500);
    expect(await ui.violations()).toEqual([]);
    await ui.fill({ external_user: 'grace' });
    await budgets.getByRole('link', { name: 'Of Grace' }).waitFor();
    expect(await budgets.innerText()).not.toContain('Of Ada');
  });

  test('warnings of the answer are shown, and the result links to its URL', async () => {
    await ui.form();
    await ui.fill({ ...CHAT, cost_limit: '0', models: 'sandbox-1' });
    await ui.press('Issue');
    await ui.page.getByRole('alert').getByText('cost_limit_too_low').waitFor();
    const [id = ''] = (
      await ui.page.locator('dl > div', { hasText: 'URL' }).getByRole('link').first().innerText()
    ).split(' ');
    await ui.page.getByRole('link', { name: id }).first().click();
    await ui.page.getByRole('heading', { level: 1, name: `URL ${id}` }).waitFor();
  });

  test('a key without the scope read sees why prices and budgets are missing', async () => {
    const own = await openConsole(browser, stack, { viewport: { width: 390, height: 844 }, hasTouch: true });
    const account = await ownAccount(stack);
    await own.page.getByLabel('API key').fill(await addApiKey(stack, account, { scopes: ['presign'] }));
    await own.page.getByRole('button', { name: 'Sign in' }).tap();
    await own.page.getByText('lacks the scope read, so prices and budgets are not shown').waitFor();
    expect(own.problems).toEqual([]);
    await own.page.context().close();
  });
});
