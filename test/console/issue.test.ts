import { startSandboxMcp } from '@presign/local';
import { ledger } from '@presign/schema/ledger-tables';
import { desc } from 'drizzle-orm';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, leaveChromium, openChromium } from '../harness/chromium.ts';
import { deferred, eventually } from '../harness/eventually.ts';
import { startUpstream, type Upstream } from '../harness/upstream.ts';
import { addApiKey, ownAccount } from '../issuer/accounts.ts';
import { openConsole, settled, signIn } from './console-page.ts';
import { type ConsoleStack, startConsole } from './console-stack.ts';
import { CHAT, type IssueScreen, openIssue } from './issue-screen.ts';

describe.skipIf(!hasChromium)('Issue a URL', () => {
  let stack: ConsoleStack;
  let browser: Browser;
  let mcp: Awaited<ReturnType<typeof startSandboxMcp>>;
  let slow: Upstream;
  let mayEnd = deferred();
  let ui: IssueScreen;

  beforeAll(async () => {
    slow = await startUpstream(async (_seen, response) => {
      const piece = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`;
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write(piece('The first part.'));
      await mayEnd.promise;
      response.end(`${piece(' The last part.')}data: [DONE]\n\n`);
    });
    [stack, browser, mcp] = await Promise.all([
      startConsole({ providers: { slow: { extends: 'openai', base_url: slow.url } } }),
      openChromium(),
      startSandboxMcp(),
    ]);
    ui = await openIssue(browser, stack);
  });
  afterAll(async () => {
    mayEnd.resolve();
    await leaveChromium();
    await stack?.close();
    await mcp?.close();
    await slow?.close();
  });

  const fact = async (name: string) => {
    const all = await ui.page.locator('dl > div').allInnerTexts();
    return all.find((each) => each.startsWith(`${name}\n`))?.slice(name.length + 1);
  };
  const expectGood = async () => {
    expect(await ui.violations()).toEqual([]);
    const gateway = `request to ${stack.gatewayUrls[0]}`;
    expect(ui.problems.filter((each) => each !== gateway)).toEqual([]);
  };
  /** A picture of the page from a heading on. */
  async function takePart(heading: string, name: string): Promise<void> {
    await ui.page.setViewportSize({ width: 920, height: 370 });
    const top = '(each) => each.textContent === `' + heading + '`';
    await ui.page.evaluate(`[...document.querySelectorAll('h1, h2')].find(${top}).scrollIntoView()`);
    await ui.picture(name, 370);
  }
  test('with the keyboard alone: a sandbox URL is issued and called, and its answer, cost and remaining limit are shown', async () => {
    const { page } = ui;
    await ui.form();
    await ui.field('provider').focus();
    for (const [name, text] of Object.entries(CHAT)) {
      while ((await page.evaluate('document.activeElement.name')) !== name) await page.keyboard.press('Tab');
      await page.keyboard.type(text);
    }
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Issued' }).waitFor();
    expect(await page.evaluate('document.activeElement.textContent')).toBe('Issued');
    const url = await page.getByLabel('The URL', { exact: true }).inputValue();
    expect(url).toMatch(new RegExp(`^${stack.gatewayUrls[0]}/llm/t/`));
    await page.getByRole('button', { name: 'Call', exact: true }).waitFor();
    while ((await page.evaluate('document.activeElement.textContent')) !== 'Call')
      await page.keyboard.press('Tab');
    await page.keyboard.press('Enter');
    await page.getByText('The call has ended.').waitFor();
    await stack.issuer.ledger.drainAll();
    const [row] = await stack.db.select().from(ledger).orderBy(desc(ledger.settledAt)).limit(1);
    const dollars = `$${(Number(row?.costMicrousd) / 1e6).toFixed(6)}`.replace(/0{1,4}$/, '');
    await eventually(async () => (await fact('Cost of the call')) === dollars);
    await eventually(async () => (await fact('Uses left')) === '1');
    const left = `$${((50_000 - Number(row?.costMicrousd)) / 1e6).toFixed(6)}`.replace(/0{1,4}$/, '');
    expect(await fact('Money left')).toBe(left);
    expect(await fact('Spent by the URL')).toBe(dollars);
    expect((await ui.region('The answer').innerText()).length).toBeGreaterThan(20);
    await expectGood();
    await page.getByRole('link', { name: String(row?.requestId).slice(0, 8) }).click();
    await page.getByRole('heading', { name: 'From hold to charge' }).waitFor();
  });

  test.each(['/v1/messages', '/v1/responses'])('an answer of %s is shown as text', async (path) => {
    await ui.form();
    await ui.fill({ ...CHAT, path });
    await ui.press('Issue');
    await ui.press('Call');
    await ui.page.getByText('The call has ended.').waitFor();
    const answer = await ui.region('The answer').innerText();
    expect(answer).toMatch(/[a-z] [a-z]/);
    expect(answer).not.toMatch(/[{}]/);
  });

  test('an answer that is not streamed has its cost in its headers', async () => {
    await ui.form();
    await ui.fill(CHAT);
    await ui.press('Issue');
    const body = ui.page.getByLabel('Body', { exact: true });
    await body.fill((await body.inputValue()).replace('"stream": true', '"stream": false'));
    await ui.press('Call');
    await ui.page.getByText('The call has ended.').waitFor();
    expect(await fact('Cost of the call')).toMatch(/^\$0\.0000\d+$/);
    expect(await ui.region('The answer').innerText()).toContain('"finish_reason"');
  });

  test('a stream is shown as it arrives, and can be stopped', async () => {
    await ui.form();
    await ui.fill({ provider: 'slow', path: '/v1/chat/completions', client_api_key: 'sk-slow' });
    await ui.press('Issue');
    await ui.press('Call');
    await ui.region('The answer').getByText('The first part.').waitFor();
    expect(await ui.region('The answer').innerText()).toBe('The first part.');
    expect(await ui.page.getByText('The answer arrives.').count()).toBe(1);
    mayEnd.resolve();
    await ui.region('The answer').getByText('The first part. The last part.').waitFor();
    mayEnd = deferred();
    await ui.press('Call');
    await ui.region('The answer').getByText('The first part.').waitFor();
    await ui.press('Stop');
    await ui.page.getByText('The call has ended.').waitFor();
    expect(await ui.region('The answer').innerText()).toBe('The first part.');
  });

  test('a refused call is shown as the caller gets it', async () => {
    await ui.form();
    await ui.fill({ ...CHAT, max_uses: '1' });
    await ui.press('Issue');
    await ui.press('Call');
    await eventually(async () => (await fact('Uses left')) === '0');
    await ui.press('Call');
    await ui.region('The answer').getByText('uses_exhausted: This URL has no uses left').waitFor();
    expect(await fact('Status')).toBe('403');
  });

  const BUNDLE = {
    ...{ 'servers[0].name': 'tools', 'servers[0].url': '', 'servers[0].transport': 'http' },
    ...{ 'servers[0].auth_type': 'bearer', max_uses: '3' },
  };

  test('a bundle is issued, and the settings of each client can be copied', async () => {
    await ui.form(true);
    await ui.fill({ ...BUNDLE, 'servers[0].url': mcp.url });
    await ui.fill({ 'servers[0].auth_config.token': 'secret-of-the-server' });
    await ui.press('Add to servers');
    await ui.fill({ 'servers[1].name': 'gone', 'servers[1].url': 'https://gone.example.com/mcp' });
    await ui.press('Add to servers');
    await ui.fill({ 'servers[2].name': 'more', 'servers[2].url': mcp.url, 'servers[2].transport': 'http' });
    await ui.press('Remove servers[1]');
    const code = await eventually(async () => {
      const text = await ui.region('The request in curl').innerText();
      return text.includes('"more"') && !text.includes('gone') && text;
    });
    expect(code).toContain('$SERVERS_0_AUTH_CONFIG_TOKEN');
    expect(code).not.toContain('secret-of-the-server');
    await ui.press('Issue');
    const url = await ui.page.getByLabel('The URL of the bundle').inputValue();
    for (const client of ['claude-code', 'claude-desktop', 'cursor', 'vscode', 'windsurf', 'cline']) {
      await ui.page.getByLabel('Client', { exact: true }).selectOption(client);
      const settings = JSON.parse(await ui.region(`Settings of ${client}`).innerText()) as object;
      expect(settings).toEqual(await (await fetch(`${url}?format=${client}`)).json());
      expect(JSON.stringify(settings)).toContain('"more"');
    }
    await settled(ui.page);
    await takePart('Give it to a client', 'bundle');
    await expectGood();
  });

  test('a key with only the scope presign has only this page, and a key without the scope lacks it', async () => {
    const account = await ownAccount(stack);
    const own = await openConsole(browser, stack, { viewport: { width: 360, height: 740 }, hasTouch: true });
    await own.page.getByLabel('API key').fill(await addApiKey(stack, account, { scopes: ['presign'] }));
    await own.page.getByRole('button', { name: 'Sign in' }).click();
    await own.page.getByRole('heading', { level: 1, name: 'Issue a URL' }).waitFor();
    expect(await own.page.locator('aside nav a').allTextContents()).toEqual(['Issue']);
    for (const name of ['provider', 'path', 'client_api_key', 'max_uses'] as const)
      await own.page.locator(`[name="${name}"]`).fill(CHAT[name]);
    await own.page.getByRole('button', { name: 'Issue', exact: true }).tap();
    const body = own.page.getByLabel('Body', { exact: true });
    await body.fill((await body.inputValue()).replace('MODEL', 'sandbox-1'));
    await own.page.getByRole('button', { name: 'Call', exact: true }).tap();
    await own.page.getByText('The call has ended.').waitFor();
    await own.page.locator('dl > div', { hasText: 'Uses left' }).getByText('1').waitFor();
    await own.page.context().close();

    const reader = await openConsole(browser, stack);
    await signIn(reader, await addApiKey(stack, account, { scopes: ['read'] }));
    expect(await reader.page.getByRole('link', { name: 'Issue', exact: true }).count()).toBe(0);
    await reader.page.evaluate("location.hash = '#/issue'");
    await reader.page.getByText('lacks the scope presign').waitFor();
    await reader.page.context().close();
  });
});
