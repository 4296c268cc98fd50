import { createPresign, type Presign } from '@presign/client';
import { refusedDays } from '@presign/issuer';
import { startSandboxLlm } from '@presign/local';
import { sharedBudgets } from '@presign/schema/budget-tables';
import { refusedCalls } from '@presign/schema/ledger-tables';
import { eq } from 'drizzle-orm';
import type { Browser, Locator } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { ownAccount } from '../issuer/accounts.ts';
import { row } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled } from './console-page.ts';
import { CHAT, type ConsoleStack, startConsole } from './console-stack.ts';
import { addPastCalls } from './past-calls.ts';

const DAY_MS = 86_400_000;
/** Yesterday in UTC, the day of the refusal that is asked for. */
const DAY = new Date(Date.now() - DAY_MS).toISOString().slice(0, 10);
const at = (time: string) => new Date(`${DAY}T${time}Z`);

const PLACES = ['amber', 'bay', 'cedar', 'delta', 'elm', 'fern', 'glen', 'harbor', 'iris', 'juniper'];
const OTHER_PLACES = ['kelp', 'lark', 'maple', 'north', 'oak', 'pine', 'quartz', 'river', 'stone', 'tide'];
const TRADES = ['bakery', 'books', 'cafe', 'dental', 'energy', 'foods', 'garden', 'hotel', 'labs', 'media'];
const MORE_TRADES = ['motors', 'music', 'optics', 'pharma', 'press', 'school', 'sports', 'tools', 'travel'];
/** 380 customers with names that are like each other. */
const CUSTOMERS = [...PLACES, ...OTHER_PLACES].flatMap((place) =>
  [...TRADES, ...MORE_TRADES].map((trade) => `${place}-${trade}`),
);
const [REFUSED, TWICE] = ['harbor-books', 'maple-press'];
const MODELS = ['sandbox-1', 'sandbox-pro', 'sandbox-mini'];

/** The pace of a person, for the documented seconds. */
const SECONDS_OF_ACT = 2;

/** A picture of so many pixels shows all columns of a list of calls. */
const WIDTH_OF_CALLS = 1_180;

/** Each question begins at the sign-in, and is answered by clicks, keys and the search alone. */
describe.skipIf(!hasChromium)('from the sign-in page, among 380 customers', () => {
  let sandbox: Awaited<ReturnType<typeof startSandboxLlm>>;
  let stack: ConsoleStack;
  let browser: Browser;
  let api: Presign;
  const twins: string[] = [];

  beforeAll(async () => {
    sandbox = await startSandboxLlm();
    // Dear models, so that figures are dollars.
    const dear = { input: 150_000_000, output: 600_000_000 };
    const pricing = Object.fromEntries(MODELS.map((model) => [model, dear]));
    const provider = { extends: ['openai', 'anthropic'], base_url: sandbox.url, pricing };
    [stack, browser] = await Promise.all([
      startConsole({ providers: { sandbox: provider } }),
      openChromium(),
    ]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    await addCustomers();
    await refuse();
    await billTwice();
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
    await sandbox?.close();
  });

  /** Four calls of each customer: of this moment, and of the last weeks. */
  async function addCustomers(): Promise<void> {
    const of = { issuerUrl: stack.issuerUrl, apiKey: stack.apiKey, account: await ownAccount(stack) };
    const call = (externalUser: string, place: number, turn: number) => {
      const settledAt = new Date(Date.now() - turn * ((place % 9) + 1) * DAY_MS);
      return row(of, {
        ...{ externalUser, provider: 'sandbox', model: MODELS[(place + turn) % 3] ?? '', totalMs: 900 },
        ...{ costMicrousd: 70_000 + ((place * 7_919 + turn * 104_729) % 900_000), settledAt },
        startedAt: new Date(settledAt.getTime() - 900),
      });
    };
    await addPastCalls(
      stack,
      CUSTOMERS.flatMap((user, place) => [0, 1, 2, 3].map((turn) => call(user, place, turn))),
    );
  }

  const issue = (user: string, limits: object = {}) =>
    stack.issue({ ...CHAT, client_api_key: 'sk-sandbox', external_user: user, ...limits });
  const ask = async (
    url: string,
    status: number,
    { model = 'sandbox-pro', ...headers }: Record<string, string> = {},
  ) => {
    const content = 'Why is the sky blue? '.repeat(40);
    const answer = await fetch(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ model, max_tokens: 100, messages: [{ role: 'user', content }] }),
    });
    expect(answer.status, await answer.text()).toBe(status);
    return answer.headers.get('x-presign-request-id') ?? '';
  };

  /** Calls that are refused for many reasons, of this customer and of others, and then moved to other times. */
  async function refuse(): Promise<void> {
    const moved: [string, Date][] = [];
    const refusal = async (call: Promise<string>, when: Date) => void moved.push([await call, when]);
    const { id } = await api.createBudget({
      ...{ name: 'Harbor Books, plan Trial', scope: { external_user: REFUSED } },
      ...{ cost_limit: 90_000_000, window: 'month' },
    });
    // As if the budget were older, so that its pace is that of days.
    const createdAt = new Date(Date.now() - 20 * DAY_MS);
    await stack.db.update(sharedBudgets).set({ createdAt }).where(eq(sharedBudgets.id, id));
    const { url: limited } = await issue(REFUSED);
    for (let call = 0; call < 4; call++) await ask(limited, 200);
    await callsSettled(stack);
    const spent = (await api.getBudget({ id })).current?.live?.spent ?? 0;
    await api.changeBudget({ id, cost_limit: spent + 20_000 });
    await refusal(ask(limited, 402), at('14:03:27'));
    // Others of the same customer, at other times.
    const once = (await issue(REFUSED, { max_uses: 1, models: ['sandbox-mini'] })).url;
    await api.changeBudget({ id, cost_limit: 90_000_000 });
    await ask(once, 200, { model: 'sandbox-mini' });
    for (const time of ['13:03:40', '14:01:55', '14:02:58', '14:04:02', '14:05:30', '15:03:12'])
      await refusal(ask(once, 403, { model: 'sandbox-mini' }), at(time));
    const forbidden = (await issue(REFUSED, { models: ['sandbox-1'] })).url;
    await refusal(ask(forbidden, 403), new Date(at('14:03:05').getTime() - DAY_MS));
    for (let each = 1; each <= 6; each++)
      await refusal(ask(forbidden, 403), new Date(Date.now() - each * 1_000));
    // Those of other customers, in the same minute.
    for (const user of ['harbor-bakery', 'harbor-cafe', 'bay-books']) {
      const other = (await issue(user, { models: ['sandbox-1'] })).url;
      await refusal(ask(other, 403), at('14:03:20'));
    }
    await eventually(async () => (await stack.db.$count(refusedCalls)) === moved.length);
    await refusedDays(stack.db).make(moved.map(([, when]) => when));
    for (const [requestId, refusedAt] of moved)
      await stack.db.update(refusedCalls).set({ refusedAt }).where(eq(refusedCalls.requestId, requestId));
  }

  /** Two equal calls of one URL, the second sent again by the SDK, among one of another URL and those of other models. */
  async function billTwice(): Promise<void> {
    const { url } = await issue(TWICE);
    const { url: another } = await issue(TWICE);
    for (const model of ['sandbox-mini', 'sandbox-pro']) await ask(another, 200, { model });
    twins.push(await ask(url, 200, { 'x-stainless-retry-count': '0' }));
    twins.push(await ask(url, 200, { 'x-stainless-retry-count': '1' }));
    await ask(url, 200, { model: 'sandbox-1', 'x-stainless-retry-count': '0' });
    await callsSettled(stack);
  }

  /** A person at the sign-in. Each act is a click, a choice or a text, and each step ends with what can be read. */
  async function walk(question: string) {
    const ui = await openConsole(browser, stack, { locale: 'en-GB', timezoneId: 'UTC' });
    const { page } = ui;
    let [acts, machineMs] = [0, 0];
    await ui.picture('sign-in');
    const step = async (
      name: string | undefined,
      does: readonly (() => Promise<unknown>)[],
      seen: () => Promise<unknown>,
      shown?: Locator,
    ) => {
      const began = performance.now();
      for (const act of does) await act();
      await seen();
      await settled(page);
      machineMs += performance.now() - began;
      acts += does.length;
      if (name !== undefined)
        await ui.picture(`${question}-${name}`, shown && 440, shown, shown && WIDTH_OF_CALLS);
    };
    const heading = (name: string | RegExp) => page.getByRole('heading', { level: 1, name }).waitFor();
    const link = (name: string | RegExp) =>
      page.getByRole('main').getByRole('link', { name }).first().click();
    const signsIn = (name?: string) =>
      step(
        name,
        [
          () => page.getByLabel('API key').fill(stack.apiKey),
          () => page.getByRole('button', { name: 'Sign in' }).click(),
        ],
        () => heading('Home'),
      );
    const searches = async (typed: string, user: string) => {
      await step('search', [() => page.keyboard.press('Control+K'), () => page.keyboard.type(typed)], () =>
        page.getByRole('option', { name: `${user} customer`, exact: true }).waitFor(),
      );
      await step('customer', [() => page.keyboard.press('Enter')], () => heading(user));
    };
    const leaves = async (ui: ConsolePage) => {
      expect(ui.problems).toEqual([]);
      await page.context().close();
      if (!process.env.CONSOLE_PICTURES) return;
      const seconds = machineMs / 1_000;
      const all = seconds + acts * SECONDS_OF_ACT;
      console.log(
        `${question}: ${acts} acts, ${seconds.toFixed(1)} s of the machine, ${all.toFixed(0)} s in all`,
      );
    };
    return { ui, page, step, heading, link, signsIn, searches, leaves: () => leaves(ui) };
  }

  test('why was harbor-books refused at 14:03?', async () => {
    const { page, step, heading, link, signsIn, searches, leaves } = await walk('refused');
    await signsIn();
    await searches('harbor-boo', REFUSED);
    // The last ones are of another reason.
    expect(await page.getByRole('table', { name: 'Last refusals' }).innerText()).not.toContain('budget');
    const list = page.getByRole('table', { name: 'Requests' });
    const rows = list.locator('tbody tr');
    await step(
      'minute',
      [
        () => link('All refused requests'),
        () => page.getByLabel('Time', { exact: true }).selectOption('Custom…'),
        () => page.getByLabel('From').fill(`${DAY}T14:03`),
        () => page.getByLabel('Until').fill(`${DAY}T14:04`),
      ],
      () => eventually(async () => (await rows.count()) === 1),
      rows.first(),
    );
    const text = await rows.innerText();
    for (const part of ['14:03:27', REFUSED, 'because the budget Harbor Books, plan Trial had $0.02 left'])
      expect(text).toContain(part);
    await step('request', [() => link(/14:03:27/)], () => heading(/^Request /));
    await page
      .locator('p.lead')
      .getByText(
        /^Refused, because the budget Harbor Books, plan Trial had \$0\.02 left, and the call could cost up to/,
      )
      .waitFor();
    await step('budget', [() => link('Harbor Books, plan Trial')], () => heading('Harbor Books, plan Trial'));
    await page.getByText(`user ${REFUSED}`).waitFor();
    await leaves();
  });

  test('what will this month cost, by customer?', async () => {
    const { page, step, heading, link, signsIn, leaves } = await walk('month');
    await signsIn('home');
    const costs = page.getByRole('table', { name: 'This month by customer' });
    const dollarsOf = (text = '') => Number(text.replace(/[$,]/g, ''));
    await costs.waitFor();
    await step('customers', [() => link('All customers')], () => heading('Customers'));
    const first = new Date().toISOString().slice(0, 8).concat('01');
    const [year = 0, next = 0] = first.split('-').map(Number);
    /** The month and its forecast of a customer or of all, as the API has them. */
    const expected = async (filter: { external_user?: string }) => {
      const now = Date.now();
      const month = await api.getUsage({ from: first, ...filter });
      const week = await api.getUsage({ from: Math.floor((now - 7 * DAY_MS) / 1_000), ...filter });
      const left = (Date.UTC(year, next, 1) - now) / DAY_MS;
      return [month.total.cost / 1e6, (month.total.cost + (week.total.cost / 7) * left) / 1e6] as const;
    };
    const shown = async (name: string) =>
      (await costs.locator('tr', { hasText: name }).first().locator('td.figure').allInnerTexts()).map(
        dollarsOf,
      );
    const top = (await costs.getByRole('rowheader').allInnerTexts()).slice(0, 3);
    const ends = await Promise.all(top.map(async (user) => (await shown(user))[1] ?? 0));
    expect(ends).toEqual(ends.toSorted((a, b) => b - a));
    for (const [name, filter] of [
      ['All customers', {}],
      ...top.map((user) => [user, { external_user: user }] as const),
    ] as const)
      await eventually(async () => {
        const [spent, forecast] = await expected(filter);
        const [cost, end = 0] = await shown(name);
        // It moves on between the two answers.
        return cost === spent && Math.abs(end - forecast) < 0.01 + forecast / 500;
      });
    await step('one', [() => page.getByLabel('Find').fill('maple-pre')], () =>
      eventually(async () => (await costs.getByRole('rowheader').count()) === 1),
    );
    expect(await costs.getByRole('rowheader').innerText()).toBe(TWICE);
    await leaves();
  });

  test('was maple-press billed twice?', async () => {
    const { page, step, heading, link, signsIn, searches, leaves } = await walk('twice');
    await signsIn();
    await searches('maple-pre', TWICE);
    const rows = page.getByRole('table', { name: 'Requests' }).locator('tbody tr');
    await step(
      'requests',
      [() => link('All requests')],
      () => eventually(async () => (await rows.count()) === 9),
      rows.nth(8),
    );
    const lines = (await rows.allInnerTexts()).map((each) => each.split('\t').map((cell) => cell.trim()));
    /** Model, provider, tokens and cost: rows of the same are what a customer complains of. */
    const same = lines.map(([, , , ...rest]) => rest.join());
    const alikes = same.flatMap((each, place) =>
      same.filter((other) => other === each).length > 1 ? [place] : [],
    );
    // The two, and one of another URL.
    expect(alikes).toHaveLength(3);
    const alike = page.getByRole('table', { name: 'Similar calls' }).locator('tbody tr');
    await step(
      'second',
      [
        () =>
          rows
            .nth(alikes[0] ?? -1)
            .getByRole('link')
            .first()
            .click(),
      ],
      async () => {
        await heading(`Request ${twins[1]?.slice(0, 8)}`);
        await alike.first().waitFor();
      },
      alike.first(),
    );
    expect(await alike.count()).toBe(1);
    const repeats = (name: string) => page.locator('dl > div', { hasText: name }).locator('dd').innerText();
    // The SDK sent the second one again, and the provider answered both: one question, and two charges.
    expect(await repeats('Repeated by the SDK')).toBe('1');
    expect(await alike.locator('td[data-head="Repeated by the SDK"]').innerText()).toBe('0');
    const charged = async () =>
      (
        await page
          .getByRole('row', { name: /^Charged/ })
          .first()
          .getByRole('cell')
          .allInnerTexts()
      ).at(-1);
    const cost = await charged();
    expect(cost).toMatch(/^\$0\.\d+$/);
    expect(await alike.locator('td[data-head="Cost"]').innerText()).toBe(cost);
    await step('first', [() => alike.getByRole('link').first().click()], () =>
      heading(`Request ${twins[0]?.slice(0, 8)}`),
    );
    await eventually(async () => (await charged()) === cost);
    expect(await repeats('Repeated by the SDK')).toBe('0');
    await leaves();
  });
});
