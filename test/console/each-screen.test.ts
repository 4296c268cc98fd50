import { readFileSync } from 'node:fs';
import { createPresign, type Presign } from '@presign/client';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { fingerOf, type Hand, keyboardOf } from './by-hand.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, makeCalls, startConsole } from './console-stack.ts';

const PHONE = { viewport: { width: 390, height: 844 }, hasTouch: true };

describe.skipIf(!hasChromium)('each page', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let api: Presign;
  let budget: string;

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    const scope = { external_user: 'adam' };
    budget = (await api.createBudget({ name: 'Team', scope, cost_limit: 500_000, window: 'month' })).id;
    for (const user of ['adam', 'grace'])
      await makeCalls(stack, { apiKey: stack.apiKey, user }, 'Why is the sky blue? '.repeat(60), 2);
    await callsSettled(stack);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const limitOf = async () => (await api.getBudget({ id: budget })).cost_limit;
  const alerts = async () => (await api.listAlerts()).data;

  type Opened = { readonly ui: ConsolePage; readonly hand: Hand };
  const heading = async ({ ui }: Opened, name: string) => {
    await ui.page.getByRole('heading', { level: 1, name, exact: true }).waitFor();
    await settled(ui.page);
  };
  const openScreen = async (opened: Opened, name: string) => {
    const menu = opened.ui.page.getByRole('button', { name: 'Menu' });
    if (await menu.isVisible()) await opened.hand.activate('button', 'Menu');
    await opened.hand.activate('link', name);
    await heading(opened, name);
  };
  /** Opens a screen, and the page of one of its rows. */
  const openOne = async (opened: Opened, screen: string, name: string) => {
    await openScreen(opened, screen);
    await opened.ui.page.getByRole('main').getByRole('link', { name, exact: true }).waitFor();
    await opened.hand.activate('link', name);
    await heading(opened, name);
  };
  const raise = async ({ ui, hand }: Opened, cents: number) => {
    await hand.activate('button', 'Change Team');
    await ui.page.getByRole('dialog').waitFor();
    await hand.write('Limit in dollars', `0.${cents}`);
    await hand.activate('button', 'Save');
    await ui.page.getByRole('dialog').waitFor({ state: 'hidden' });
    expect(await limitOf()).toBe(cents * 10_000);
    await ui.page.getByText(`$0.${cents}`, { exact: true }).first().waitFor();
  };

  type Screen = {
    readonly name: string;
    readonly open: (opened: Opened) => Promise<void>;
    /** The task of its reader. `own` differs from hand to hand. */
    readonly use: (opened: Opened, own: number) => Promise<void>;
  };

  const SCREENS: readonly Screen[] = [
    {
      name: 'Customers',
      open: (opened) => openScreen(opened, 'Customers'),
      use: async ({ ui, hand }) => {
        const row = (name: string) => ui.page.getByRole('rowheader', { name, exact: true });
        await row('grace').waitFor();
        await hand.write('Find', 'ad');
        await eventually(async () => (await row('grace').count()) === 0);
        expect(await row('adam').count()).toBe(1);
      },
    },
    {
      name: 'one customer',
      open: (opened) => openOne(opened, 'Customers', 'adam'),
      use: (opened, own) => raise(opened, 60 + own),
    },
    {
      name: 'one budget',
      open: (opened) => openOne(opened, 'Limits', 'Team'),
      use: (opened, own) => raise(opened, 70 + own),
    },
    {
      name: 'Alerts',
      open: (opened) => openScreen(opened, 'Alerts'),
      use: async ({ ui, hand }, own) => {
        await hand.activate('button', 'Create an alert');
        await ui.page.getByRole('dialog').filter({ visible: true }).waitFor();
        await hand.write('Name', `Spend ${own}`);
        await hand.activate('button', 'Create');
        await ui.page.getByRole('rowheader', { name: `Spend ${own}` }).waitFor();
        expect((await alerts()).map(({ name }) => name)).toContain(`Spend ${own}`);
      },
    },
    {
      name: 'one alert',
      open: async (opened) => {
        const condition = { errors: { percent: 10, calls: 20, minutes: 15 } };
        if (!(await alerts()).some(({ name }) => name === 'Errors'))
          await api.createAlert({ name: 'Errors', condition });
        await openOne(opened, 'Alerts', 'Errors');
      },
      use: async ({ ui, hand }) => {
        const find = async () => (await alerts()).find(({ name }) => name === 'Errors');
        const isOn = (await find())?.enabled === true;
        const verb = isOn ? 'Mute' : 'Unmute';
        await hand.activate('button', `${verb} Errors`);
        await ui.page.getByRole('dialog').filter({ visible: true }).waitFor();
        await hand.activate('button', verb);
        await ui.page
          .getByRole('button', { name: `${isOn ? 'Unmute' : 'Mute'} Errors`, exact: true })
          .waitFor();
        expect((await find())?.enabled).toBe(!isOn);
      },
    },
  ];

  const openWithKeyboard = async (): Promise<Opened> => {
    const ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
    return { ui, hand: keyboardOf(ui.page) };
  };
  const openOnPhone = async (): Promise<Opened> => {
    const ui = await openConsole(browser, stack, PHONE);
    await signIn(ui, stack.apiKey);
    return { ui, hand: fingerOf(ui.page) };
  };
  const leave = async ({ ui }: Opened) => {
    expect(ui.problems).toEqual([]);
    await ui.page.context().close();
  };

  test.each(SCREENS)(
    '$name works with the keyboard alone, and axe finds nothing',
    async ({ open, use }) => {
      const opened = await openWithKeyboard();
      await open(opened);
      expect(await opened.ui.violations()).toEqual([]);
      await use(opened, 1);
      await leave(opened);
    },
    300_000,
  );

  test.each(SCREENS)('$name works by touch on a phone, and nothing is too wide', async ({ open, use }) => {
    const opened = await openOnPhone();
    await open(opened);
    await use(opened, 2);
    const { page } = opened.ui;
    expect(await page.evaluate('document.documentElement.scrollWidth - innerWidth')).toBeLessThanOrEqual(0);
    await leave(opened);
  });

  test('has a navigation with the version, the account, the name and scopes of the signed-in key, and a link to the docs', async () => {
    const { ui } = await openOnPhone();
    const { page } = ui;
    const { version } = JSON.parse(
      readFileSync(new URL('../../apps/console/package.json', import.meta.url), 'utf8'),
    ) as { version: string };
    await page.getByRole('button', { name: 'Menu' }).tap();
    await page.getByRole('complementary', { name: 'Presign' }).getByText(version, { exact: true }).waitFor();
    const account = page.getByRole('region', { name: 'Signed in' });
    const { account_name: owner, api_key: key } = await api.getLimits();
    expect((await account.innerText()).split('\n').filter(Boolean).slice(0, 3)).toEqual([
      owner,
      'bootstrap',
      key.scopes.join(', '),
    ]);
    await account.getByRole('link', { name: 'Documentation' }).tap();
    await page.getByRole('heading', { level: 1, name: 'Documentation' }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/docs/');
    await page.context().close();
  });

  test('keeps the name and the buttons of a row in view while the other cells scroll', async () => {
    const { ui } = await openWithKeyboard();
    const { page } = ui;
    await ui.open('Limits');
    const table = page.getByRole('region', { name: 'Shared budgets' });
    const box = `document.querySelector('section.scroll[aria-label="Shared budgets"]')`;
    const leftOf = async (part: Locator) => (await part.boundingBox())?.x ?? Number.NaN;
    const lefts = async () => ({
      name: await leftOf(table.getByRole('rowheader', { name: 'Team' })),
      button: await leftOf(table.getByRole('button', { name: 'Delete Team' })),
      cell: await leftOf(table.getByRole('columnheader', { name: 'Window' })),
    });
    for (const width of [800, 1_000]) {
      await page.setViewportSize({ width, height: 700 });
      const before = await lefts();
      const scrolled = Number(await page.evaluate(`${box}.scrollLeft = 10_000, ${box}.scrollLeft`));
      expect(scrolled).toBeGreaterThan(50);
      const after = await lefts();
      // Columns are as wide as their live figures, to a part of a pixel.
      const moved = [
        after.name - before.name,
        after.button - before.button,
        after.cell - before.cell + scrolled,
      ];
      for (const pixels of moved) expect(Math.abs(pixels)).toBeLessThan(2);
      expect(after.button).toBeLessThan(width);
      await page.evaluate(`${box}.scrollLeft = 0`);
    }
    await page.context().close();
  });

  test('has buttons that copy a whole id, and confirm it', async () => {
    const { ui } = await openWithKeyboard();
    const { page } = ui;
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    const hand = keyboardOf(page);
    await openOne({ ui, hand }, 'Limits', 'Team');
    await hand.activate('button', 'Copy budget id');
    await eventually(async () => (await hand.focused()) === 'Copied budget id');
    expect(await page.evaluate('navigator.clipboard.readText()')).toBe(budget);
    await page.context().close();
  });
});
