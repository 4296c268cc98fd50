import type { Browser } from 'playwright-core';
import { type ConsolePage, openConsole, signIn } from './console-page.ts';
import type { ConsoleStack } from './console-stack.ts';

/** A key with everything that code could misread. */
export const KEY = `sk-sandbox-'"$HOME\`\\n`;

/** A request for a URL of the sandbox, in the order of the form. */
export const CHAT = {
  ...{ provider: 'sandbox', path: '/v1/chat/completions', client_api_key: KEY },
  ...{ cost_limit: '0.05', max_uses: '2', external_user: 'adam' },
};

export type IssueScreen = ConsolePage & {
  readonly field: (name: string) => ReturnType<ConsolePage['page']['locator']>;
  /** An expression about a field, in the page. */
  readonly of: (name: string, expression: string) => Promise<unknown>;
  readonly press: (name: string) => Promise<void>;
  readonly region: IssueScreen['field'];
  readonly fill: (texts: Readonly<Record<string, string>>) => Promise<void>;
  /** A fresh form. */
  readonly form: (bundle?: boolean) => Promise<void>;
};

/** The screen that issues, of an admin. */
export async function openIssue(browser: Browser, stack: ConsoleStack): Promise<IssueScreen> {
  const ui = await openConsole(browser, stack);
  await signIn(ui, stack.apiKey);
  const { page } = ui;
  const field = (name: string) => page.locator(`[name="${name}"]`);
  const of = (name: string, expression: string) =>
    page.evaluate(`((each) => ${expression})(document.querySelector('[name="${name}"]'))`);
  const fill = async (texts: Readonly<Record<string, string>>) => {
    for (const [name, text] of Object.entries(texts)) {
      const control = field(name);
      // Rare fields are folded away.
      const fold = page.locator('details:not([open])', { has: control });
      if (await fold.count()) await fold.locator('summary').click();
      if ((await of(name, 'each.tagName')) === 'SELECT') await control.selectOption(text);
      else await control.fill(text);
    }
  };
  const form = async (bundle = false) => {
    await ui.open('URLs');
    await ui.open('Issue');
    if (bundle) await page.getByRole('link', { name: 'A bundle of MCP servers' }).click();
    await field(bundle ? 'servers[0].url' : 'provider').waitFor();
  };
  const press = (name: string) => page.getByRole('button', { name, exact: true }).click();
  const region = (name: string) => page.getByRole('region', { name });
  return { ...ui, field, of, press, region, fill, form };
}
