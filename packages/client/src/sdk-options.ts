import type { McpPresignAnswer } from '../generated/types.ts';

/** What was issued for a provider; an answer of `presign`. */
export type Issued = { readonly url: string };

// SDKs want a key; the gateway drops it, and puts the real one in its place.
const apiKey = 'presigned';

/**
 * Options of the `openai` SDK and of those that are made after it: `new OpenAI(openaiOptions(answer))`.
 * @param answer issued for a path that the SDK calls, of any provider that has OpenAI's API
 * @throws TypeError when this is no issued URL
 */
export function openaiOptions(answer: Issued): { baseURL: string; apiKey: string } {
  const { base, path } = split(answer);
  // The SDK adds what is behind the version; some providers have none in their paths.
  const [prefix = ''] = /^.*?\/v\d+(?:(?:alpha|beta)\d*)?(?:\/openai)?(?=\/)/.exec(path) ?? [];
  return { baseURL: base + prefix, apiKey };
}

/**
 * Options of the `@anthropic-ai/sdk`: `new Anthropic(anthropicOptions(answer))`.
 * @throws TypeError when this is no URL issued for a path of Anthropic's API
 */
export function anthropicOptions(answer: Issued): { baseURL: string; apiKey: string } {
  const { base, path } = split(answer);
  const end = path.indexOf('/v1/');
  if (end < 0) throw new TypeError(`The path ${path} is none that the SDK of Anthropic calls.`);
  return { baseURL: base + path.slice(0, end), apiKey };
}

/**
 * Options of the `@google/genai` SDK: `new GoogleGenAI(googleOptions(answer))`.
 * @throws TypeError when this is no URL issued for a path of Google's API
 */
export function googleOptions(answer: Issued): {
  apiKey: string;
  httpOptions: { baseUrl: string; apiVersion: string };
} {
  const { base, path } = split(answer);
  const [, apiVersion] = /^\/(v\d+(?:(?:alpha|beta)\d*)?)\//.exec(path) ?? [];
  if (apiVersion === undefined) throw new TypeError(`The path ${path} is none that the SDK of Google calls.`);
  // Left to themselves, versions of the SDK differ in the API's version.
  return { apiKey, httpOptions: { baseUrl: base, apiVersion } };
}

/** The URL up to its token, and the provider's path behind it. */
function split({ url }: Issued): { base: string; path: string } {
  const [, base, path] = /^(https?:\/\/[^?#]*?\/llm\/t\/[^/?#]+)(\/[^?#]*)$/.exec(url) ?? [];
  // The URL itself is not told: it is a permission.
  if (base === undefined || path === undefined) throw new TypeError('url: expected what `presign` answers.');
  return { base, path };
}

/** The configuration that MCP clients read. */
export type McpConfig = { readonly mcpServers: McpPresignAnswer['servers'] };

/**
 * The configuration of all servers of a bundle: what its `bundle_url` gives, without asking for it.
 * It is as secret as the URLs in it.
 */
export function mcpConfig({ servers }: Pick<McpPresignAnswer, 'servers'>): McpConfig {
  return { mcpServers: structuredClone(servers) };
}
