import { readFileSync } from 'node:fs';
import { createPresign, PresignError } from '@presign/client';

// An example that fails ends with one line.
process.on('uncaughtException', (error) => fail(reasonFor(error)));

/** One line that says why something failed. */
export function reasonFor(error: unknown): string {
  const { message, cause } = error instanceof Error ? error : new Error(String(error));
  const code = error instanceof PresignError ? `${error.code}: ` : '';
  const deeper = cause instanceof Error ? `: ${cause.message}` : '';
  return `${code}${message}${deeper}`.replaceAll(/\s+/g, ' ').trim();
}

/** One line that says what the gateway, or a backend, answered. */
export async function reasonIn(answer: Response): Promise<string> {
  const text = await answer.clone().text();
  try {
    return (JSON.parse(text) as { error: { message: string } }).error.message;
  } catch {
    return `${answer.status} ${answer.statusText}`;
  }
}

function fail(line: string): never {
  process.stderr.write(`${line}\n`);
  process.exit(1);
}

/** Where the issuer is that `start` runs. */
export const issuerUrl = process.env.ISSUER_URL || 'http://127.0.0.1:8787';

await fetch(`${issuerUrl}/healthz`).catch(() =>
  fail(
    `No issuer answers at ${issuerUrl}. Is \`npx -y pnpm@12 start\` running? (ISSUER_URL sets the address.)`,
  ),
);

/**
 * The address of the sandbox's MCP server, which `start` prints. `MCP_SERVER_URL` sets another, for example if `start`
 * runs with another `GATEWAY_PORT`.
 */
export async function sandboxMcpUrl(): Promise<string> {
  const url = process.env.MCP_SERVER_URL || 'http://127.0.0.1:8790/mcp';
  await fetch(url).catch(() =>
    fail(`No MCP server answers at ${url}. \`start\` prints the address: set MCP_SERVER_URL to it.`),
  );
  return url;
}

const apiKeyFile = new URL('../.presign/api-key', import.meta.url);

/** A client with the API key that `start` made, which has the scope `admin`. */
export const presign = createPresign({
  url: issuerUrl,
  apiKey: process.env.PRESIGN_API_KEY ?? readFileSync(apiKeyFile, 'utf8').trim(),
});
