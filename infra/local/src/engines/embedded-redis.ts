import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import {
  type CommandExecutor,
  createRedisCommandExecutor,
  RedisDatabase,
  RedisResult,
  RedisServerState,
  Resp2Server,
} from 'js-redis-server/core';
import { AppendLog } from './append-log.ts';
import { applyChange, type Change, changeOf, changesToRebuild, fromText, type Keyspace } from './keyspace.ts';

export type EmbeddedRedisOptions = {
  /** Folder for the log; without one, all data is gone when the process ends. */
  dir?: string;
  host?: '127.0.0.1';
  /** 0 (the default) takes a free port. */
  port?: number;
  /** The log is rewritten when it is larger than this and than twice its data. */
  compactAboveBytes?: number;
};

export type EmbeddedRedis = {
  /** With a password made for this run: any local program or web page can reach a loopback port. */
  url: string;
  port: number;
  close(): Promise<void>;
};

/**
 * Starts a Redis in this process, for other code in it or on this machine; it listens on loopback alone.
 *
 * With `dir`, the changes of a command, script or transaction are in the log as a whole before its reply leaves, so that
 * killing the process loses nothing that was answered. The log keeps keys of every type with their expiry, but no scripts,
 * functions or consumer groups. If the log cannot be written, every command is
 * refused until the next start. Only one process may use the folder at a time.
 *
 * Throws if the port is taken or the log is damaged, naming it.
 */
export async function startEmbeddedRedis(options: EmbeddedRedisOptions = {}): Promise<EmbeddedRedis> {
  const password = randomBytes(24).toString('base64url');
  const state = new RedisServerState({ requirepass: password });
  // A database of our own: the state's has a listener for keyspace notifications that costs a copy of the
  // whole value on every change.
  const database = new RedisDatabase(0);
  state.databases[0] = database;
  await readScriptFlagsAsComment(state);
  const executor = createRedisCommandExecutor();
  const { dir, compactAboveBytes = 64 * 1024 * 1024 } = options;
  const log =
    dir === undefined ? undefined : keepInLog(join(dir, 'redis.log'), compactAboveBytes, database, executor);
  const server = new Resp2Server({ server: state, executor });
  const sockets = socketsOf(server);
  const close = async () => {
    for (const socket of sockets) socket.destroy();
    if (server.server.listening) await server.close();
    state.close();
    log?.close();
  };
  try {
    server.server.listen({ host: options.host ?? '127.0.0.1', port: options.port ?? 0 });
    await once(server.server, 'listening');
  } catch (error) {
    await close();
    throw error;
  }
  const port = server.getPort();
  return { url: `redis://:${password}@127.0.0.1:${port}`, port, close };
}

/**
 * The engine cannot read a script's first line `#!lua flags=…` (Redis manual, "Script flags"). Flags say how a script runs
 * on a replica or where memory is full, and this engine has neither replicas nor a limit of memory.
 */
async function readScriptFlagsAsComment(state: RedisServerState): Promise<void> {
  const lua = await state.getLuaRuntime();
  const run = lua.eval.bind(lua);
  lua.eval = (script, ...rest) => run(Buffer.from(script.toString().replace(/^#!/, '--')), ...rest);
}

/** Fills the database from the log, then writes its changes there before each command's reply. */
function keepInLog(
  file: string,
  compactAboveBytes: number,
  database: RedisDatabase,
  executor: CommandExecutor,
): AppendLog<Change[]> {
  // The state that a restart would restore: only replay builds it. A script's changes are one log entry.
  const keyspace: Keyspace = new Map();
  const log = new AppendLog<Change[]>(
    file,
    {
      replay: (changes) => {
        for (const change of changes) applyChange(keyspace, change);
      },
      snapshot: () => changesToRebuild(keyspace).map((change) => [change]),
    },
    compactAboveBytes,
  );
  for (const [key, { value, expiresAt }] of keyspace) {
    database.set(fromText(key), value, expiresAt === undefined ? {} : { expiresAt });
  }
  const pending = gatherChanges(database, keyspace);
  writeBeforeReply(executor, () => {
    if (pending.length > 0) log.append(pending.splice(0));
  });
  return log;
}

/**
 * Collects changes. It wraps `emit` and does not subscribe, because subscribers get a copy of the
 * whole value: adding to a stream would cost as much as the stream is long.
 */
function gatherChanges(database: RedisDatabase, keyspace: Keyspace): Change[] {
  const pending: Change[] = [];
  const bus = database.mutations;
  const emit = bus.emit.bind(bus);
  bus.emit = (event) => {
    const change = changeOf(keyspace, event);
    applyChange(keyspace, change);
    pending.push(change);
    emit(event);
  };
  return pending;
}

/** Commands run one at a time, a script or EXEC as one of them, so the changes pending after one are all of its changes. */
function writeBeforeReply(executor: CommandExecutor, write: () => void): void {
  const execute = executor.executeRaw.bind(executor);
  let failure: string | undefined;
  executor.executeRaw = async (command, args, context) => {
    if (failure === undefined) {
      const result = await execute(command, args, context);
      try {
        write();
        return result;
      } catch (error) {
        failure = error instanceof Error ? error.message : String(error);
      }
    }
    return RedisResult.error(`the log of changes cannot be written: ${failure}`, 'MISCONF');
  };
}

function socketsOf(server: Resp2Server): Set<Socket> {
  const sockets = new Set<Socket>();
  server.server.on('connection', (socket) => {
    // Replies to a pipeline are written one by one: with Nagle's algorithm the second waits 40 ms for an ACK.
    socket.setNoDelay();
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  return sockets;
}
