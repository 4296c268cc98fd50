import { compileConfig } from './config/compile-config.ts';
import { dialectOf, socketOf, socketsOn } from './dialect-of.ts';
import { SOCKET_FIELDS } from './facts/openai/responses.ts';
import type { JsonObject } from './json.ts';
import { isModelName, openingSession, sessionModel } from './openai/realtime.ts';
import type { Provider } from './provider.ts';

/** A field of a config, and why no socket can have its value. */
export type DeadField = { readonly field: string; readonly reason: string };

/**
 * Why no socket that a path or pattern reaches is of use with a config. Undefined: one is, or it reaches none. Gateways refuse handshakes by
 * the same rules.
 */
export function whyNoSocket(provider: Provider, pattern: string, config: JsonObject): DeadField | undefined {
  const dead = socketsOn(provider, pattern).map((path) =>
    socketOf(provider, path) === 'responses' ? whyNoTurn(config) : whyNoSession(provider, path, config),
  );
  return dead.includes(undefined) ? undefined : dead[0];
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
