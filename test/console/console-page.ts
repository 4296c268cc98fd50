import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import axe from 'axe-core';
import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { expect } from 'vitest';
import { eventually } from '../harness/eventually.ts';
import type { ConsoleStack } from './console-stack.ts';

const IMAGES = fileURLToPath(new URL('../../docs/images/', import.meta.url));

/** `CONSOLE_PICTURES=1` writes the pictures of the docs again. */
const writesPictures = Boolean(process.env.CONSOLE_PICTURES);

/** A picture must be small, because the repository keeps it. */
const MOST_PICTURE_BYTES = 100_000;

export type ConsolePage = {
  readonly page: Page;
  /** Goes to a screen by its link in the navigation. */
  readonly open: (name: string) => Promise<void>;
  /** Goes to a place by its address behind the `#`. */
  readonly go: (place: string) => Promise<void>;
  /** The text of the screen, or none while the page changes. */
  readonly text: () => Promise<string>;
  /** The table with this caption. */
  readonly table: (caption: string) => Locator;
  /** The violations that axe finds, light and dark, on three screens. */
  readonly violations: () => Promise<string[]>;
  /** @param shown what is to be in the picture, at its end */
  readonly picture: (name: string, height?: number, shown?: Locator, width?: number) => Promise<void>;
  /** Errors of scripts and of the policy of the page, and requests to other servers. */
  readonly problems: readonly string[];
};

/** A browser at the console's sign-in, with its own cookies. */
export async function openConsole(
  browser: Browser,
  stack: Pick<ConsoleStack, 'issuerUrl' | 'consoleUrl'>,
  options: BrowserContextOptions = {},
): Promise<ConsolePage> {
  const context = await browser.newContext({ viewport: LARGE, reducedMotion: 'reduce', ...options });
  const page = await context.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(error.message));
  page.on('console', (message) => {
    // A request that is refused, or repeated later because the issuer is busy, is one line of the browser's, and no error of the page.
    if (message.type() === 'error' && !/status of (?:4\d\d|503)/.test(message.text()))
      problems.push(message.text());
  });
  page.on('request', (request) => {
    const { origin, protocol } = new URL(request.url());
    if (origin !== stack.issuerUrl && protocol !== 'blob:') problems.push(`request to ${origin}`);
  });
  await page.goto(stack.consoleUrl);
  return {
    page,
    problems,
    open: async (name) => {
      const menu = page.getByRole('button', { name: 'Menu' });
      if (await menu.isVisible()) await menu.click();
      await page
        .getByRole('navigation', { name: 'Screens' })
        .getByRole('link', { name, exact: true })
        .click();
      await page.getByRole('heading', { level: 1, name }).waitFor();
      await settled(page);
    },
    go: async (place) => {
      await page.goto(`${stack.consoleUrl}#/${place}`);
      await settled(page);
    },
    text: () =>
      page
        .locator('main')
        .innerText()
        .catch(() => ''),
    table: (caption) => page.getByRole('table', { name: caption }),
    violations: () => audit(page),
    picture: (name, height, shown, width) => takePicture(page, `console-${name}`, height, width, shown),
  };
}

export async function signIn({ page }: ConsolePage, apiKey: string): Promise<void> {
  await page.getByLabel('API key').fill(apiKey);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('heading', { name: 'Home' }).waitFor();
  await settled(page);
}

/** Waits until nothing is loading. */
export const settled = (page: Page): Promise<unknown> =>
  eventually(async () => (await page.getByText('Loading…').count()) === 0);

/** Writes a picture for the docs, if it is to. */
export async function takePicture(
  page: Page,
  name: string,
  height = PICTURE.height,
  width = PICTURE.width,
  shown?: Locator,
): Promise<void> {
  if (!writesPictures) return;
  await page.setViewportSize({ width, height });
  // A button far to the right may have been pressed.
  await page.evaluate("for (const each of document.querySelectorAll('section.scroll')) each.scrollLeft = 0");
  await shown?.scrollIntoViewIfNeeded();
  // Charts follow the new size, and the browser paints what came into sight.
  await page.evaluate(
    'new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 200))))',
  );
  const bytes = await page.screenshot({ animations: 'disabled' });
  expect(bytes.length, name).toBeLessThan(MOST_PICTURE_BYTES);
  writeFileSync(join(IMAGES, `${name}.png`), bytes);
  await page.setViewportSize(LARGE);
}

const LARGE = { width: 1280, height: 800 };
const SCREENS = [LARGE, { width: 1440, height: 900 }, { width: 390, height: 844 }];
const PICTURE = { width: 1000, height: 560 };

type AxeResult = { id: string; nodes: { html: string; failureSummary?: string }[] };

/** The violations that axe finds, light and dark, on three screens. */
export async function audit(page: Page): Promise<string[]> {
  const found: string[] = [];
  // The browser's debugger runs it, which the policy of the page allows. A document keeps it.
  if (!(await page.evaluate(`'axe' in globalThis`))) await page.evaluate(axe.source);
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const size of SCREENS) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize(size);
      const violations = (await page.evaluate(
        'axe.run().then(({ violations }) => violations)',
      )) as AxeResult[];
      found.push(
        ...violations.map(
          ({ id, nodes }) =>
            `${colorScheme} ${size.width}: ${id}: ${nodes[0]?.html} ${nodes[0]?.failureSummary}`,
        ),
      );
      const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
      if (Number(wide) > 0) found.push(`${size.width}: the page is ${wide} pixels too wide`);
    }
  }
  await page.emulateMedia({ colorScheme: 'light' });
  await page.setViewportSize(LARGE);
  return found;
}
