import { randomUUID } from 'node:crypto';
import { anotherConnection, keys, type RedisClient, redisReady } from '@presign/limits';

/** The streams of all gateways, by the channels on which they listen. */
export type Listeners = {
  /** Listens for a stream at this gateway. Rejects when Redis does not answer. */
  readonly listen: (partition: number, deliver: (message: string) => void) => Promise<Listening>;
  /** Whether a stream listens, at any gateway. */
  readonly hasStream: (partition: number, channel: string) => Promise<boolean>;
  /** Sends a message to a stream at any gateway. Resolves to false when no stream listens. */
  readonly send: (partition: number, channel: string, message: string) => Promise<boolean>;
  /** Subscribes to messages that gateways send to all gateways. Rejects when Redis does not answer. */
  readonly hear: (deliver: (message: string) => void) => Promise<void>;
  /** Sends a message to every subscribed gateway. */
  readonly say: (message: string) => Promise<unknown>;
  readonly close: () => void;
};

export type Listening = { readonly channel: string; readonly close: () => void };

/** How long a stream counts as listening after its gateway has died. */
const PRESENT_MS = 60_000;

/** Subscribes through an additional connection to Redis, which it opens for the first stream. */
export function createListeners(redis: RedisClient): Listeners {
  const streams = new Map<string, (message: string) => void>();
  let subscriber: Promise<RedisClient> | undefined;
  const subscribed = () => {
    subscriber ??= connectSubscriber(redis, streams).catch((error: unknown) => {
      subscriber = undefined;
      throw error;
    });
    return subscriber;
  };
  return {
    listen: async (partition, deliver) => {
      const channel = randomUUID();
      const connection = await subscribed();
      await connection.subscribe(topic(channel));
      streams.set(channel, deliver);
      const key = keys.listening(partition, channel);
      const present = () => redis.set(key, '1', 'PX', PRESENT_MS);
      const renewal = setInterval(() => void present().catch(ignore), PRESENT_MS / 3);
      const close = () => {
        clearInterval(renewal);
        streams.delete(channel);
        void connection.unsubscribe(topic(channel)).catch(ignore);
        void redis.del(key).catch(ignore);
      };
      await present().catch((error: unknown) => {
        close();
        throw error;
      });
      return { channel, close };
    },
    hasStream: async (partition, channel) =>
      streams.has(channel) || (await redis.exists(keys.listening(partition, channel))) === 1,
    send: async (partition, channel, message) => {
      const own = streams.get(channel);
      if (own) {
        own(message);
        return true;
      }
      if ((await redis.exists(keys.listening(partition, channel))) === 0) return false;
      const receivers = await redis.publish(topic(channel), message);
      // The count is zero while the stream's gateway reconnects, and a Cluster node counts only its own subscribers.
      return receivers > 0 || 'nodes' in redis;
    },
    hear: async (deliver) => {
      const connection = await subscribed();
      await connection.subscribe(topic(ALL));
      streams.set(ALL, deliver);
    },
    say: (message) => redis.publish(topic(ALL), message),
    close: () => void subscriber?.then((connection) => connection.disconnect(), ignore),
  };
}

/** The channel of all gateways. */
const ALL = 'all';
const topic = (channel: string) => `presign:mcp:${channel}`;

async function connectSubscriber(
  redis: RedisClient,
  streams: ReadonlyMap<string, (message: string) => void>,
): Promise<RedisClient> {
  // After an error the connection reconnects and resubscribes automatically.
  const connection = anotherConnection(redis, ignore);
  connection.on('message', (name: string, message: string) => {
    streams.get(name.slice(topic('').length))?.(message);
  });
  await redisReady(connection).catch((error: unknown) => {
    connection.disconnect();
    throw error;
  });
  return connection;
}

const ignore = () => {};
