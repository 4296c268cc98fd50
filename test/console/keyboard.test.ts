import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { keyboardOf } from './by-hand.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, makeCalls, startConsole } from './console-stack.ts';

describe.skipIf(!hasChromium)('with the keyboard alone, on the page', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let receiver: Upstream;
  let ui: ConsolePage;
  let request: string;

  const ask = async (method: string, path: string, body?: object): Promise<unknown> => {
    const answer = await fetch(`${stack.issuerUrl}${path}`, {
      method,
      headers: { authorization: `Bearer ${stack.apiKey}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    expect(answer.ok, await answer.clone().text()).toBe(true);
    return answer.json();
  };
  const list = async <T>(path: string) => ((await ask('GET', path)) as { data: T[] }).data;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    receiver = await startUpstream((_seen, response) => void response.writeHead(204).end());
    const scope = { external_user: 'adam' };
    await ask('POST', '/v1/budgets', { name: 'Team', scope, cost_limit: 500_000, window: 'month' });
    await makeCalls(stack, { apiKey: stack.apiKey, user: 'adam' }, 'Why is the sky blue? ', 1);
    await callsSettled(stack);
    request = (await list<{ request_id: string }>('/v1/calls'))[0]?.request_id ?? '';
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await receiver?.close();
  });

  const press = (key: string) => ui.page.keyboard.press(key);
  const type = (text: string) => ui.page.keyboard.type(text);
  const focused = () => keyboardOf(ui.page).focused();
  const tabTo = (name: string | RegExp) => keyboardOf(ui.page).tabTo(name);
  const activate = async (name: string | RegExp) => {
    await tabTo(name);
    await press('Enter');
  };
  /** Goes to a screen by its link. Its heading gets the focus. */
  async function open(name: string): Promise<void> {
    await activate(name);
    await ui.page.getByRole('heading', { level: 1, name }).waitFor();
    await settled(ui.page);
  }
  const dialog = () => ui.page.getByRole('dialog');
  /** Opens the dialog of a button. */
  async function openDialog(button: string | RegExp): Promise<void> {
    await activate(button);
    await dialog().waitFor();
  }
  /** Waits until a dialog has closed. The button that opened it has the focus again. */
  async function expectClosed(button: string): Promise<void> {
    await dialog().waitFor({ state: 'hidden' });
    expect(await focused()).toBe(button);
  }

  test('Home: spending is shown by user or by provider', async () => {
    await tabTo(/^Spend by/);
    // One key: a browser takes letters that come late for the beginning of another word.
    await press('u');
    await ui.page.getByRole('img', { name: 'Spending of each day (UTC) by user' }).waitFor();
    await press('ArrowUp');
    await ui.page.getByRole('img', { name: 'Spending of each day (UTC) by provider' }).waitFor();
  });

  test('Limits: a limit is raised', async () => {
    await open('Limits');
    await openDialog('Change Team');
    expect(await ui.violations()).toEqual([]);
    await tabTo('Limit in dollars');
    await press('Control+A');
    await type('0.75');
    await activate('Save');
    await expectClosed('Change Team');
    expect((await list<{ cost_limit: number }>('/v1/budgets'))[0]?.cost_limit).toBe(750_000);
  });

  test('Limits: a budget is deleted, and the focus stays in its table', async () => {
    const scope = { external_user: 'gone' };
    await ask('POST', '/v1/budgets', { name: 'Gone', scope, cost_limit: 1, window: 'month' });
    await open('Home');
    await open('Limits');
    await ui.page.getByRole('button', { name: 'Delete Gone' }).waitFor();
    await openDialog('Delete Gone');
    await activate('Delete');
    await dialog().waitFor({ state: 'hidden' });
    await ui.page.getByText('Gone (deleted)').waitFor();
    expect(await ui.page.evaluate('document.activeElement.ariaLabel')).toBe('Shared budgets');
  });

  test('Requests: a call is found by its request id, and its session is opened and revoked', async () => {
    await open('Requests');
    await press('Control+K');
    await type(request);
    await ui.page.getByRole('option', { name: request }).first().waitFor();
    expect(await ui.violations()).toEqual([]);
    await press('Enter');
    await ui.page.getByRole('heading', { name: 'From hold to charge' }).waitFor();
    await settled(ui.page);
    const [session] = await list<{ id: string }>('/v1/sessions');
    await activate(session?.id.slice(0, 8) ?? '');
    await openDialog('Revoke the session');
    await activate('Revoke');
    await ui.page.getByText('revoked').first().waitFor();
    expect(await list('/v1/sessions?status=active')).toEqual([]);
  });

  test('URLs: those of a user are listed', async () => {
    await open('URLs');
    await tabTo('User');
    await type('grace');
    await ui.page.getByText('No URL fits.').waitFor();
  });

  test('Explore: calls are summed by day, and saved', async () => {
    await open('Explore');
    await tabTo(/^Sum by/);
    await type('day');
    await ui.page.getByRole('columnheader', { name: /^day/ }).waitFor();
    const saved = ui.page.waitForEvent('download');
    await activate('Download CSV');
    expect((await saved).suggestedFilename()).toBe('usage.csv');
  });

  test('Keys: an API key with an extra scope is created, and its field selects the whole secret', async () => {
    await open('Keys');
    await openDialog('Create an API key');
    await tabTo('Name');
    await type('Reports');
    await tabTo('read');
    await press('Space');
    await activate('Create');
    await dialog().getByLabel('The new API key').waitFor();
    await tabTo('The new API key');
    const selected = 'document.activeElement.selectionEnd - document.activeElement.selectionStart';
    expect(await ui.page.evaluate(selected)).toBeGreaterThan(40);
    await activate('Close');
    await expectClosed('Create an API key');
    const keys = await list<{ name: string; scopes: string[] }>('/v1/api-keys');
    expect(keys.find(({ name }) => name === 'Reports')?.scopes).toEqual(['presign', 'read']);
  });

  test('Webhooks: an endpoint for one event is added and tested', async () => {
    await open('Webhooks');
    await openDialog('Add a webhook');
    await tabTo('URL');
    await type(`${receiver.url}/events`);
    await tabTo('grant.revoked');
    await press('Space');
    expect(await ui.violations()).toEqual([]);
    await activate('Add');
    await dialog().getByLabel('The secret that signs its events').waitFor();
    await activate('Close');
    await expectClosed('Add a webhook');
    expect((await list<{ events: string[] }>('/v1/webhooks'))[0]?.events).toEqual(['grant.revoked']);
    await openDialog(/^Send a test/);
    await activate('Send');
    await eventually(async () => receiver.seen.length > 0);
  });

  test('Audit: changes of one kind are filtered, and the changed thing is opened', async () => {
    await open('Audit');
    await tabTo(/^Change/);
    await type('budget changed');
    await ui.page.getByText('cost limit: $0.50 → $0.75').first().waitFor();
    await activate('Team');
    await ui.page.getByRole('heading', { level: 1, name: 'Team' }).waitFor();
  });

  test('Accounts: one is created and suspended', async () => {
    await open('Accounts');
    await openDialog('Create an account');
    await tabTo('Name');
    await type('Initech');
    await activate('Create');
    await dialog().getByLabel('Its first API key, with the scope admin').waitFor();
    await activate('Close');
    await expectClosed('Create an account');
    await openDialog('Suspend Initech');
    await activate('Suspend');
    await ui.page.getByRole('button', { name: 'Resume Initech' }).waitFor();
    const [made] = await list<{ name: string; suspended_at: number | null }>('/v1/accounts');
    expect(made).toMatchObject({ name: 'Initech', suspended_at: expect.any(Number) });
  });
});
