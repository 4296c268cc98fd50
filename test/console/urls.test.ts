import { createPresign, type Presign } from '@presign/client';
import type { Browser, Route } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { callsSettled } from '../harness/calls-settled.ts';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { eventually } from '../harness/eventually.ts';
import { addAccount, addApiKey, ownAccount } from '../issuer/accounts.ts';
import { parseCsv } from '../issuer/ask-usage.ts';
import { type ConsolePage, openConsole, settled, signIn } from './console-page.ts';
import { CHAT, type ConsoleStack, callOnce, startConsole } from './console-stack.ts';

const OTHER = 'foreign';

describe.skipIf(!hasChromium)('the URLs page', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let api: Presign;
  let account: string;
  let ui: ConsolePage;

  /** URLs of a user, each of a session of its own. Returns their ids. */
  const issue = async (user: string, amount: number, fields: object = {}): Promise<string[]> => {
    const ids: string[] = [];
    for (let at = 0; at < amount; at++) {
      const body = { ...CHAT, client_api_key: 'sk-sandbox', external_user: user, cost_limit: 1_000_000 };
      const { grant_id } = await stack.issue({
        ...body,
        max_uses: 10,
        external_session: `chat ${user}`,
        ...fields,
      });
      ids.push(grant_id);
    }
    return ids;
  };

  beforeAll(async () => {
    [stack, browser] = await Promise.all([startConsole(), openChromium()]);
    api = createPresign({ url: stack.issuerUrl, apiKey: stack.apiKey });
    account = await ownAccount(stack);
    const other = await addAccount(stack);
    const foreign = { ...CHAT, client_api_key: 'sk-sandbox', external_user: `${OTHER} user` };
    await stack.presign(foreign, { authorization: `Bearer ${other.apiKey}` });
    await issue('adam', 3, { models: ['sandbox-1', 'sandbox-mini'] });
    const called = await stack.issue({
      ...CHAT,
      client_api_key: 'sk-sandbox',
      external_user: 'grace',
      max_uses: 2,
    });
    await api.changeSession({ id: called.session_id, name: 'Onboarding' });
    for (let call = 0; call < 2; call++) expect((await callOnce(called.url, 'Hello')).status).toBe(200);
    const ended = await issue('grace', 1, { models: ['sandbox-mini'] });
    await api.revokeGrant({ id: ended[0] ?? '' });
    await callsSettled(stack);
    ui = await openConsole(browser, stack);
    await signIn(ui, stack.apiKey);
  });
  afterAll(async () => {
    await leaveChromium();
    await stack?.close();
  });

  const rows = (at = ui) => at.page.getByRole('table', { name: 'URLs' }).locator('tbody tr');
  const boxes = () => ui.page.getByRole('checkbox', { name: /^Select / });
  const bar = (at = ui) => at.page.getByRole('region', { name: 'Selected URLs' });
  const dialog = (at = ui) => at.page.getByRole('dialog');
  const hasRows = (amount: number, at = ui) => eventually(async () => (await rows(at).count()) === amount);
  const show = async (filter: string) => {
    await ui.page.evaluate(`location.hash = '#/urls?${filter}'`);
    await settled(ui.page);
  };
  const openBulk = async (name: string) => {
    await bar()
      .getByRole('button', { name: new RegExp(`^${name}`) })
      .click();
    await dialog().waitFor();
  };
  const submit = (name: string) => dialog().getByRole('button', { name, exact: true }).click();
  const says = (text: string, at = ui) => dialog(at).getByText(text).waitFor();
  const limitsOf = (ids: readonly string[]) =>
    Promise.all(ids.map(async (id) => (await api.getGrant({ id })).cost_limit));
  /** Answers the first requests of a kind as a test wants them. */
  const meddle = async (method: string, times: number, how: (route: Route) => Promise<void>) => {
    let left = times;
    await ui.page.route('**/v1/grants/*', async (route) => {
      if (route.request().method() !== method || left <= 0) return route.continue();
      left--;
      await how(route);
    });
    return () => ui.page.unroute('**/v1/grants/*');
  };

  test('the list shows what each URL spent and used of its limits, with names, and no other account', async () => {
    await ui.open('URLs');
    await hasRows(5);
    const text = await ui.page.locator('main').innerText();
    expect(text).not.toContain(OTHER);
    const spent = rows().filter({ hasText: 'Onboarding' });
    expect(await spent.getByRole('cell').allInnerTexts()).toEqual(
      expect.arrayContaining(['grace', 'exhausted', '2 of 2', 'sandbox', 'all', 'Calls']),
    );
    expect(await spent.innerText()).toMatch(/100 %\s+\$0\.0000\d\d/);
    expect(await rows().filter({ hasText: 'adam' }).first().innerText()).toContain('$0.00 of $1.00');
    await ui.picture('urls', 520);
    expect(await ui.violations()).toEqual([]);
    expect(ui.problems).toEqual([]);
  });

  test('the list is filtered by name, user, provider, model, expiry and state, and sorted', async () => {
    await show('');
    await ui.page.getByLabel('Name').fill('onboard');
    await hasRows(1);
    await show('external_user=adam');
    await hasRows(3);
    await show('model=sandbox-mini');
    await hasRows(5);
    await show('model=sandbox-1');
    await hasRows(4);
    await show('ends=1h');
    await hasRows(4);
    await ui.page.getByLabel('State').selectOption('revoked');
    await ui.page.getByText('No URL fits.').waitFor();
    await show('state=revoked&provider=sandbox');
    await hasRows(1);
    await show('provider=openai');
    await ui.page.getByText('No URL fits.').waitFor();
    await show('');
    await hasRows(5);
    await ui.page.getByRole('columnheader', { name: 'User' }).getByRole('button').click();
    const users = async () =>
      (await rows().locator('td[data-head="User"]').allInnerTexts()).map((each) => each.trim());
    expect(await users()).toEqual(['adam', 'adam', 'adam', 'grace', 'grace']);
  });

  test('a row links to the URL, its user and its calls; a URL is raised on its page, and found by its id', async () => {
    const { page } = ui;
    const [id = ''] = await issue('linus', 1);
    await show('external_user=linus');
    await rows().getByRole('link', { name: 'Calls' }).click();
    await page.getByRole('heading', { level: 1, name: 'Requests' }).waitFor();
    await eventually(async () => (await page.getByLabel('URL (id)').inputValue()) === id);
    await page.goBack();
    await rows().getByRole('link', { name: 'linus', exact: true }).click();
    await page.getByRole('heading', { level: 1, name: 'linus' }).waitFor();
    await page.keyboard.press('Control+K');
    await page.keyboard.type(id);
    await page.getByRole('option', { name: `${id} URL`, exact: true }).click();
    await page.getByRole('heading', { level: 1, name: `URL ${id.slice(0, 8)}` }).waitFor();
    await page.getByRole('button', { name: /^Raise/ }).click();
    await dialog().getByLabel('Dollars more').fill('0.25');
    await says('1 URL may spend $0.25 more each, in all $0.25.');
    await submit('Raise');
    await dialog().waitFor({ state: 'hidden' });
    await page.getByText('$0.00 of $1.25').waitFor();
    await ui.picture('url', 560);
    expect(await ui.violations()).toEqual([]);
  });

  test('all URLs of a filter are raised: the dialog says what changes for how many, and at most four requests run at once', async () => {
    const ids = await issue('bulk', 12);
    const [unlimited = ''] = await issue('bulk', 1, { cost_limit: null });
    await show('external_user=bulk');
    await hasRows(13);
    let [under, most] = [0, 0];
    const count = (change: number) => (request: { method: () => string }) => {
      if (request.method() !== 'PATCH') return;
      under += change;
      most = Math.max(most, under);
    };
    const [begin, end] = [count(1), count(-1)];
    ui.page.on('request', begin);
    ui.page.on('requestfinished', end);
    await ui.page.getByLabel('All of this filter').check();
    await bar().getByText('13 selected').waitFor();
    await openBulk('Raise');
    await says('Enter dollars with at most six decimals, a whole number of uses, or both.');
    await dialog().getByLabel('Dollars more').fill('5');
    await says('The limits of 12 URLs of 1 user rise from the next call on.');
    await says('12 URLs may spend $5.00 more each, in all $60.00.');
    await says('1 URL stays as it is: it has no such limit.');
    await ui.picture('urls-bulk', 520);
    expect(await ui.violations()).toEqual([]);
    await submit('Raise');
    await says('12 of 12 done.');
    expect(new Set(await limitsOf(ids))).toEqual(new Set([6_000_000]));
    expect(await limitsOf([unlimited])).toEqual([null]);
    expect(most).toBeGreaterThan(1);
    expect(most).toBeLessThanOrEqual(4);
    ui.page.off('request', begin);
    ui.page.off('requestfinished', end);
    await dialog().getByRole('button', { name: 'Close' }).click();
    await bar().getByText('1 selected').waitFor();
    await rows().filter({ hasText: '$0.00 of $6.00' }).first().waitFor();
  });

  test('a partial failure shows a line for each failed URL, keeps it selected, and a retry adds nothing twice', async () => {
    const ids = await issue('partial', 6);
    await show('external_user=partial');
    await hasRows(6);
    await ui.page.getByLabel('All of this filter').check();
    // The first two reach the issuer, and their answers are lost; two more are refused.
    let lost = 0;
    const restore = await meddle('PATCH', 4, async (route) => {
      if (lost++ < 2) {
        await route.fetch();
        return route.abort();
      }
      const error = {
        code: 'forbidden',
        message: 'The policy forbids it.',
        type: 'permission_error',
        param: null,
      };
      return route.fulfill({ status: 403, json: { error: { ...error, request_id: 'r' } } });
    });
    await openBulk('Raise');
    await dialog().getByLabel('Uses more').fill('5');
    await submit('Raise');
    await says('4 of 6 done, 2 failed.');
    const failed = dialog().getByRole('table', { name: 'URLs that failed' }).locator('tbody tr');
    expect(await failed.count()).toBe(2);
    expect(await failed.first().innerText()).toMatch(
      /chat partial · \w{8}\s+partial\s+The policy forbids it\./,
    );
    expect(await ui.violations()).toEqual([]);
    await submit('Close');
    await bar().getByText('2 selected').waitFor();
    await restore();
    await openBulk('Raise');
    await dialog().getByLabel('Uses more').fill('5');
    await submit('Raise');
    await says('2 of 2 done.');
    await submit('Close');
    const uses = await Promise.all(ids.map(async (id) => (await api.getGrant({ id })).max_uses));
    expect(uses).toEqual(ids.map(() => 15));
  });

  test('a URL that was changed elsewhere is not overwritten, and a retry starts from its present limits', async () => {
    const [first = '', second = ''] = await issue('meanwhile', 2);
    await show('external_user=meanwhile');
    await hasRows(2);
    await ui.page.getByLabel('All of this filter').check();
    await openBulk('Raise');
    await dialog().getByLabel('Dollars more').fill('1');
    await api.changeGrant({ id: first, cost_limit: 3_000_000 });
    await submit('Raise');
    await says('1 of 2 done, 1 failed.');
    await says('it now has $3.00 and 10 uses');
    expect(await limitsOf([first, second])).toEqual([3_000_000, 2_000_000]);
    await submit('Try again for 1');
    await says('2 of 2 done.');
    expect(await limitsOf([first, second])).toEqual([4_000_000, 2_000_000]);
    await submit('Close');
  });

  test('a change that is stopped keeps the remaining URLs selected', async () => {
    await issue('stopped', 8);
    await show('external_user=stopped');
    await hasRows(8);
    await ui.page.getByLabel('All of this filter').check();
    const held: Route[] = [];
    const restore = await meddle('PATCH', 4, async (route) => void held.push(route));
    await openBulk('Raise');
    await dialog().getByLabel('Dollars more').fill('1');
    await submit('Raise');
    await eventually(async () => held.length === 4);
    await submit('Stop');
    for (const each of held) await each.continue();
    await says('4 of 8 done.');
    await dialog().getByRole('button', { name: 'Try again for 4' }).waitFor();
    await submit('Close');
    await bar().getByText('4 selected').waitFor();
    await restore();
  });

  test('URLs are extended, and the new URLs are saved as CSV and work', async () => {
    const ids = await issue('later', 2);
    await show('external_user=later');
    await hasRows(2);
    await ui.page.getByLabel('All of this filter').check();
    await openBulk('Extend');
    await dialog().getByLabel('Hours').fill('48');
    await says('2 URLs of 1 user end 2 days later than now.');
    await submit('Extend');
    await says('2 URLs are new. Give them to their holders: they are not shown again.');
    const saved = ui.page.waitForEvent('download');
    await submit('Save the new URLs as CSV');
    const csv = Buffer.concat(await (await (await saved).createReadStream()).toArray()).toString();
    const [head, ...lines] = parseCsv(csv);
    expect(head).toEqual(['id', 'external_user', 'url']);
    expect(lines.map(([id]) => id).sort()).toEqual([...ids].sort());
    for (const line of lines) expect((await callOnce(line[2] ?? '', 'Hello')).status).toBe(200);
    await submit('Close');
  });

  test('with the keyboard alone, a range is selected and revoked, and the focus stays in the action bar', async () => {
    const { page } = ui;
    await issue('keys', 4);
    await show('external_user=keys');
    await hasRows(4);
    const ids = await boxes().evaluateAll((all) =>
      all.map((each) => (each as unknown as { value: string }).value),
    );
    await boxes().first().focus();
    await page.keyboard.press('Space');
    while ((await page.evaluate('document.activeElement.value')) !== ids[2]) await page.keyboard.press('Tab');
    await page.keyboard.press('Shift+Space');
    await bar().getByText('3 selected').waitFor();
    const isOnRevoke = `document.activeElement.closest('section')?.ariaLabel === 'Selected URLs' && document.activeElement.className === 'danger'`;
    while (!(await page.evaluate(isOnRevoke))) await page.keyboard.press('Shift+Tab');
    await page.keyboard.press('Enter');
    await says('3 URLs of 1 user are revoked.');
    await dialog().getByRole('button', { name: 'Revoke', exact: true }).focus();
    await page.keyboard.press('Enter');
    await says('3 of 3 done.');
    await page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'hidden' });
    await bar().getByText('0 selected').waitFor();
    expect(await page.evaluate('document.activeElement.ariaLabel')).toBe('Selected URLs');
    const states = await Promise.all(ids.map(async (id) => (await api.getGrant({ id })).status));
    expect(states).toEqual(['revoked', 'revoked', 'revoked', 'active']);
  });

  /** Holds the further pages of the list until they are let go. */
  const holdPages = async () => {
    let letGo = () => {};
    const isLetGo = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    await ui.page.route(/v1\/grants\?.*cursor=/, async (route) => {
      await isLetGo;
      await route.continue();
    });
    return async () => {
      letGo();
      await isWhole();
      await ui.page.unrouteAll();
    };
  };
  const isWhole = () =>
    eventually(async () => (await ui.page.getByRole('button', { name: 'Show more' }).count()) === 0);

  test('"all of a filter" reads to the end, and selects the last page too', async () => {
    await issue('many', 53);
    await show('external_user=many');
    await ui.page.getByRole('button', { name: 'Show more' }).waitFor();
    await ui.page.getByLabel('All of this filter').check();
    await bar().getByText('53 selected').waitFor();
    await isWhole();
    expect(await bar().getByText('53 selected').count()).toBe(1);
  });

  test('a deselected URL stays deselected when more arrive, and "All" can be undone while they load', async () => {
    await issue('taken', 53);
    await show('external_user=taken');
    const go = await holdPages();
    await ui.page.getByLabel('All of this filter').check();
    await bar().getByText('Reading on').waitFor();
    await boxes().first().uncheck();
    await bar().getByText('49 selected').waitFor();
    await go();
    await bar().getByText('52 selected').waitFor();
    await ui.page.reload();
    const goOn = await holdPages();
    await ui.page.getByLabel('All of this filter').check();
    await bar().getByText('Reading on').waitFor();
    await ui.page.getByLabel('All of this filter').uncheck();
    await goOn();
    expect(await bar().getByText('0 selected').count()).toBe(1);
  });

  test('a change of all URLs of an endless list says that there may be more', async () => {
    await issue('endless', 2);
    // The issuer always has one more page.
    await ui.page.route(/v1\/grants\?/, async (route) => {
      const { data } = await api.listGrants({ external_user: 'endless' });
      return route.fulfill({ json: { data, next_cursor: 'more' } });
    });
    await show('external_user=endless');
    await ui.page.getByLabel('All of this filter').check();
    await bar().getByText('More URLs may fit this filter').waitFor();
    await openBulk('Revoke');
    await says('More URLs may fit this filter: only those that were read are selected.');
    await submit('Cancel');
    await ui.page.unrouteAll();
  });

  test('the report about a change of all URLs of a session stays while they end', async () => {
    const [id = ''] = await issue('report', 1);
    const { session_id } = await api.getGrant({ id });
    await ui.page.evaluate(`location.hash = '#/urls/${session_id}'`);
    await ui.page.getByRole('table', { name: 'URLs of this session' }).waitFor();
    await ui.page.getByLabel('All of this filter').check();
    await openBulk('Revoke');
    await submit('Revoke');
    await says('1 of 1 done.');
    // The figures are read again every five seconds.
    await eventually(async () => (await ui.page.locator('tbody .status.revoked').count()) === 1);
    await says('1 of 1 done.');
    expect(await dialog().getByRole('heading').innerText()).toBe('Revoke 1 URL');
    await submit('Close');
    await dialog().waitFor({ state: 'hidden' });
  });

  test('a URL that was changed elsewhere is changed by a second click, from its present limits', async () => {
    const [id = ''] = await issue('pair', 1);
    await ui.page.evaluate(`location.hash = '#/urls/url/${id}'`);
    await ui.page.getByRole('button', { name: /^Raise/ }).click();
    await dialog().getByLabel('Dollars more').fill('1');
    await api.changeGrant({ id, cost_limit: 3_000_000 });
    await submit('Raise');
    await says('Try again to start from there.');
    await submit('Raise');
    await dialog().waitFor({ state: 'hidden' });
    expect(await limitsOf([id])).toEqual([4_000_000]);
  });

  test('Escape does not lose new URLs, and a URL that Redis delays is read by a retry, under its name', async () => {
    const [id = ''] = await issue('waits', 1);
    await show('external_user=waits');
    await hasRows(1);
    await ui.page.getByLabel('All of this filter').check();
    // The change is stored, and its answer is that of an issuer whose Redis does not answer.
    const restore = await meddle('PATCH', 1, async (route) => {
      await api.changeGrant({ id, ...(route.request().postDataJSON() as { expires_at: number }) });
      return route.fulfill({ status: 202, json: { status: 'pending' } });
    });
    await openBulk('Extend');
    await submit('Extend');
    await says('Their new URLs are missing: try again when Redis answers.');
    await restore();
    await submit('Try again for 1');
    const secret = dialog().getByLabel(/^The URL with the later end of waits, chat waits · /);
    await secret.waitFor();
    const asked: string[] = [];
    ui.page.on('dialog', (question) => {
      asked.push(question.message());
      return asked.length === 1 ? question.dismiss() : question.accept();
    });
    await ui.page.keyboard.press('Escape');
    await eventually(async () => asked.length === 1);
    expect((await callOnce(await secret.inputValue(), 'Hello')).status).toBe(200);
    await ui.page.keyboard.press('Escape');
    await dialog().waitFor({ state: 'hidden' });
    expect(asked).toHaveLength(2);
  });

  test('a key with the scope read alone sees why it cannot change URLs', async () => {
    const own = await openConsole(browser, stack);
    await signIn(own, await addApiKey(stack, account, { scopes: ['read'], name: 'reader' }));
    await own.open('URLs');
    await own.page.getByText('sign in with a key that has the scope presign').waitFor();
    expect(await own.page.getByRole('checkbox').count()).toBe(0);
    expect(await own.page.getByRole('button', { name: /Raise|Extend|Revoke/ }).count()).toBe(0);
    await own.page.context().close();
  });

  test('on a phone, another account sees only its own URL, and revokes it by touch', async () => {
    const own = await openConsole(browser, stack, { viewport: { width: 390, height: 844 }, hasTouch: true });
    const { id } = await addAccount(stack);
    const key = await addApiKey(stack, id, { scopes: ['read', 'presign'] });
    const body = { ...CHAT, client_api_key: 'sk-sandbox', external_user: 'hedy', max_uses: 5 };
    const issued = await stack.presign(body, { authorization: `Bearer ${key}` });
    const { url } = (await issued.json()) as { url: string };
    await signIn(own, key);
    await own.open('URLs');
    await hasRows(1, own);
    expect(await own.page.locator('main').innerText()).not.toContain('adam');
    await own.page.getByRole('checkbox', { name: /^Select / }).tap();
    await bar(own)
      .getByRole('button', { name: /^Revoke/ })
      .tap();
    await dialog(own).getByRole('button', { name: 'Revoke', exact: true }).tap();
    await says('1 of 1 done.', own);
    await dialog(own).getByRole('button', { name: 'Close' }).tap();
    await rows(own).getByText('revoked').waitFor();
    expect((await callOnce(url, 'Hello')).status).toBe(403);
    expect(own.problems).toEqual([]);
    await own.page.context().close();
  });
});
