import { compileConfig } from './config/compile-config.ts';
import { dialectOf, socketOf } from './dialect-of.ts';
import { SOCKET_FIELDS } from './facts/openai/responses.ts';
import type { JsonObject } from './json.ts';
import { isModelName, openingSession, sessionModel } from './openai/realtime.ts';
import type { Provider } from './provider.ts';

/** A field of a config, and why no socket can have its value. */
export type DeadField = { readonly field: string; readonly reason: string };

/** Why the sockets on a path are of no use with a config. Undefined: they are, or the path has none. Gateways refuse handshakes by the same rules. */
export function whyNoSocket(provider: Provider, path: string, config: JsonObject): DeadField | undefined {
  const protocol = socketOf(provider, path);
  if (protocol === 'responses') return whyNoTurn(config);
  return protocol === 'realtime' ? whyNoSession(provider, path, config) : undefined;
}

/**
 * Why no turn of Responses can have a config. A config is laid over the body, and the event has fields next to it.
 * https://developers.openai.com/api/reference/resources/responses/websocket-events (2026-11-29): "background is not supported"
 */
export function whyNoTurn(config: JsonObject): DeadField | undefined {
  const own = SOCKET_FIELDS.names.find((name) => Object.hasOwn(config, name));
  if (own !== undefined) return { field: own, reason: 'is a field of the event, which only its holder sets' };
  return config.background === true
    ? { field: 'background', reason: 'is not supported over a socket' }
    : undefined;
}

function whyNoSession(provider: Provider, path: string, config: JsonObject): DeadField | undefined {
  const dialect = dialectOf(provider, path);
  const model = sessionModel(compileConfig(dialect, config), path) ?? undefined;
  if (model !== undefined && !isModelName(model))
    return { field: 'model', reason: 'is not the name of a model' };
  if (!('unbounded' in openingSession(compileConfig(dialect, config), path))) return undefined;
  for (const [field, value] of Object.entries(config)) {
    const opened = openingSession(compileConfig(dialect, { [field]: value }), path);
    if ('unbounded' in opened)
      return { field, reason: `${opened.unbounded.param}: ${opened.unbounded.reason}` };
  }
  return { field: 'model', reason: 'has no session' };
}
