import { existsSync } from 'node:fs';
import { type Browser, chromium } from 'playwright-core';

/** Where Debian, Alpine, Chrome's own package and macOS put it. */
const PLACES = [
  process.env.CHROMIUM,
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];
const executablePath = PLACES.find((place) => place !== undefined && existsSync(place));

/** Whether this machine has one; nothing installs it. */
export const hasChromium = executablePath !== undefined;

export const launchChromium = (): Promise<Browser> =>
  chromium.launch({
    executablePath: executablePath ?? '',
    // As root in a container Chromium has neither a sandbox nor much shared memory.
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu', '--disable-background-networking'],
  });
