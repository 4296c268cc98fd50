import type { McpPresignAnswer } from '../generated/types.ts';

/** An issued URL: the answer of `presign`. */
export type Issued = { readonly url: string };

// SDKs require a key. The gateway replaces it by the real one.
const apiKey = 'presigned';

/**
 * An issued URL for a program that sends its key as `Authorization: Bearer <key>`: the key is the token, so the address is no secret,
 * and may be printed in errors and logs.
 * @throws TypeError when this is not an issued URL
 */
export function headerForm(answer: Issued): {
  readonly base: string;
  readonly path: string;
  readonly token: string;
} {
  const { base, path } = split(answer);
  const at = base.lastIndexOf('/t/');
  return { base: base.slice(0, at), path, token: base.slice(at + 3) };
}

/**
 * Options of the `openai` SDK and of SDKs with the same options: `new OpenAI(openaiOptions(answer))`.
 * @param answer issued for a path that the SDK calls, of any provider that has OpenAI's API
 * @throws TypeError when this is not an issued URL
 */
export function openaiOptions(answer: Issued): { baseURL: string; apiKey: string } {
  const { base, path } = split(answer);
  // The SDK adds the part after the version. Some providers have no version in their paths.
  const [prefix = ''] = /^.*?\/v\d+(?:(?:alpha|beta)\d*)?(?:\/openai)?(?=\/)/.exec(path) ?? [];
  return { baseURL: base + prefix, apiKey };
}

/**
 * Options of the `@anthropic-ai/sdk`: `new Anthropic(anthropicOptions(answer))`.
 * @throws TypeError when this is not a URL for a path of Anthropic's API
 */
export function anthropicOptions(answer: Issued): { baseURL: string; apiKey: string } {
  const { base, path } = split(answer);
  const end = path.indexOf('/v1/');
  if (end < 0)
    throw new TypeError(
      `The SDK of Anthropic does not call the path ${path}. Issue a URL for a path that has /v1/ in it.`,
    );
  return { baseURL: base + path.slice(0, end), apiKey };
}

/**
 * Options of the `@google/genai` SDK: `new GoogleGenAI(googleOptions(answer))`.
 * @throws TypeError when this is not a URL for a path of Google's API
 */
export function googleOptions(answer: Issued): {
  apiKey: string;
  httpOptions: { baseUrl: string; apiVersion: string };
} {
  const { base, path } = split(answer);
  const [, apiVersion] = /^\/(v\d+(?:(?:alpha|beta)\d*)?)\//.exec(path) ?? [];
  if (apiVersion === undefined)
    throw new TypeError(
      `The SDK of Google does not call the path ${path}. Issue a URL for a path that begins with a version, such as /v1beta/.`,
    );
  // Versions of the SDK differ in the API version that they use by default.
  return { apiKey, httpOptions: { baseUrl: base, apiVersion } };
}

/** The URL up to its token, and the provider's path after it. */
function split({ url }: Issued): { base: string; path: string } {
  const [, base, path] = /^(https?:\/\/[^?#]*?\/llm\/t\/[^/?#]+)(\/[^?#]*)$/.exec(url) ?? [];
  // The error does not quote the URL, because anyone who has it can use it.
  if (base === undefined || path === undefined) throw new TypeError('url: expected the answer of `presign`.');
  return { base, path };
}

/** The configuration that MCP clients read. */
export type McpConfig = { readonly mcpServers: McpPresignAnswer['servers'] };

/**
 * The configuration of all servers of a bundle: the answer of its `bundle_url`, without a request. It is as secret as the
 * URLs in it.
 */
export function mcpConfig({ servers }: Pick<McpPresignAnswer, 'servers'>): McpConfig {
  return { mcpServers: structuredClone(servers) };
}
