import { readFileSync } from 'node:fs';
import { createPresign } from '@presign/client';

const apiKeyFile = new URL('../.presign/api-key', import.meta.url);

/** Where the issuer is that `start` runs. */
export const issuerUrl = process.env.ISSUER_URL ?? 'http://127.0.0.1:8787';

await fetch(`${issuerUrl}/healthz`).catch(() => {
  process.stderr.write(
    `No issuer answers at ${issuerUrl}. Is \`npx -y pnpm@12 start\` running? (ISSUER_URL sets the address.)\n`,
  );
  process.exit(1);
});

/**
 * The address of the sandbox's MCP server, which `start` prints. `MCP_SERVER_URL` sets another, for example if `start`
 * runs with another `GATEWAY_PORT`.
 */
export async function sandboxMcpUrl(): Promise<string> {
  const url = process.env.MCP_SERVER_URL ?? 'http://127.0.0.1:8790/mcp';
  await fetch(url).catch(() => {
    process.stderr.write(
      `No MCP server answers at ${url}. \`start\` prints the address: set MCP_SERVER_URL to it.\n`,
    );
    process.exit(1);
  });
  return url;
}

/** A client with the API key that `start` made, which has the scope `admin`. */
export const presign = createPresign({
  url: issuerUrl,
  apiKey: process.env.PRESIGN_API_KEY ?? readFileSync(apiKeyFile, 'utf8').trim(),
});
