import { nestedWithin } from '../bounds/count-text.ts';
import type { Dialect, ModelInPath } from '../dialect.ts';
import type { JsonObject } from '../json.ts';
import type { Bounded, CallFacts, DialectSpend } from '../spend.ts';
import { anthropicMessages, cachesForHour, DEEPEST } from './messages.ts';

/** The differences between the clouds that serve Claude. */
type Cloud = {
  readonly modelInPath: ModelInPath;
  readonly model: (path: string) => string | undefined;
  /** The end of a path whose answer is a stream. */
  readonly streamPath: RegExp;
  /** Unwraps the events of a stream, where the cloud sends them in an envelope. */
  readonly unwrap?: (data: string) => string;
};

/**
 * Anthropic's Messages in a cloud: the path names the model, and the body has `anthropic_version` and `anthropic_beta`
 * (`@anthropic-ai/bedrock-sdk` 1.1, `@anthropic-ai/vertex-sdk` 1.1, client.ts).
 */
export function anthropicInCloud(id: string, cloud: Cloud): Dialect {
  const { modelInPath, model, streamPath, unwrap = (data) => data } = cloud;
  const { settings, spend, errors } = anthropicMessages;
  if (!spend) throw new Error('the dialect of Anthropic has no bound');
  return {
    id,
    settings: settings.filter(({ at }) => at?.[0] !== 'model'),
    modelInPath,
    ...(errors && { errors }),
    spend: {
      ...spend,
      model: (_, path) => model(path),
      streams: ({ stream }, path) => stream === true || streamPath.test(path),
      boundBody: (body, call) => boundBody(spend, body, call),
      atStandardPrice,
      betasAt: ['anthropic_beta'],
      readStream: () => {
        const reader = spend.readStream?.();
        return {
          event: (data, name) => reader?.event(unwrap(data), name),
          isWhole: () => reader?.isWhole() === true,
        };
      },
    },
  };
}

/** The bound of Anthropic's own API, once the fields of clouds are removed. A cloud serves only Claude in this dialect. */
function boundBody({ boundBody: bound }: DialectSpend, body: JsonObject, call: CallFacts): Bounded {
  const { anthropic_version: _version, anthropic_beta: _beta, ...message } = body;
  if (nestedWithin(body, DEEPEST) && cachesForHour(body)) return { unbounded: CACHED_FOR_HOUR };
  return bound({ ...message, model: 'claude-' }, call);
}

const CACHED_FOR_HOUR = {
  param: 'cache_control.ttl',
  reason: 'the price list has no rate for tokens that are cached for an hour',
};

/** Clouds have no field for the tier in this dialect. */
const atStandardPrice = ({ service_tier: _tier, speed: _speed, ...body }: JsonObject): JsonObject => body;
