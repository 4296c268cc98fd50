import type { McpPricing } from '@presign/schema';
import { mcpPricing } from '@presign/schema';

/**
 * Reads the operator's prices of MCP calls: `{"https://mcp.example.com/mcp": {"default": 500, "tools": {"search":
 * 2000}}}`, in microdollars, by a server's address, or by an origin for all servers there.
 * @throws Error that names the address at fault
 */
export function readMcpPrices(text: string): ReadonlyMap<string, McpPricing> {
  const file: unknown = JSON.parse(text);
  if (typeof file !== 'object' || file === null || Array.isArray(file)) throw new Error('expected an object');
  const prices = new Map<string, McpPricing>();
  for (const [address, pricing] of Object.entries(file)) {
    const read = mcpPricing.safeParse(pricing);
    if (!URL.canParse(address)) throw new Error(`${address}: expected the address of a server`);
    if (!read.success) throw new Error(`${address}: ${read.error.issues[0]?.message ?? 'malformed'}`);
    prices.set(address, read.data);
  }
  return prices;
}
