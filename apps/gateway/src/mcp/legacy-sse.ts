import { randomUUID } from 'node:crypto';
import { anotherConnection, keys, type RedisClient, redisReady } from '@presign/limits';

/**
 * Open streams of the older HTTP+SSE transport: a refusal of a message that any gateway got is told on the stream,
 * which any other gateway may hold.
 */
export type Listeners = {
  /** Begins to listen for a stream. Rejects when Redis does not answer. */
  readonly listen: (partition: number, deliver: (message: string) => void) => Promise<Listening>;
  /** Whether a stream listens there; if so it has been told. */
  readonly tell: (partition: number, channel: string, message: string) => Promise<boolean>;
  readonly close: () => void;
};

export type Listening = { readonly channel: string; readonly close: () => void };

/** A stream that a dead gateway held is believed to listen for so long. */
const PRESENT_MS = 60_000;

/** Listens through a connection of its own, made when the first stream needs it. */
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
    tell: async (partition, channel, message) => {
      const own = streams.get(channel);
      if (own) {
        own(message);
        return true;
      }
      if ((await redis.exists(keys.listening(partition, channel))) === 0) return false;
      const heard = await redis.publish(topic(channel), message);
      // Nobody while its gateway is connecting anew. A Cluster's node counts only who listens at itself.
      return heard > 0 || 'nodes' in redis;
    },
    close: () => void subscriber?.then((connection) => connection.disconnect(), ignore),
  };
}

const topic = (channel: string) => `presign:mcp:${channel}`;

async function connectSubscriber(
  redis: RedisClient,
  streams: ReadonlyMap<string, (message: string) => void>,
): Promise<RedisClient> {
  // After an error it goes on reconnecting, and subscribes again by itself.
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
