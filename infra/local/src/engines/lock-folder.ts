import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export type FolderLock = { release(): Promise<void> };

/**
 * Makes this process the only one to use `dir` (created if missing) until it releases the folder or ends, in
 * whatever way: the lock is a socket that a living holder answers, so a dead one's is never in the way.
 *
 * Throws an error that names the folder if another process, or another call in this one, holds it.
 */
export async function lockFolder(dir: string): Promise<FolderLock> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const folder = realpathSync(dir);
  const claim = process.platform === 'win32' ? await claimPipe(folder) : await claimSocket(folder);
  if (claim === 'taken') throw new Error(`${dir} is in use by another running process: stop that one first`);
  return {
    release: () => new Promise((resolve) => claim.close(() => resolve())),
  };
}

/** A pipe's name belongs to one process and goes with it; Windows needs nothing more. */
async function claimPipe(folder: string): Promise<Server | 'taken'> {
  const server = createServer((socket) => socket.destroy());
  try {
    await listen(server, `\\\\.\\pipe\\presign-${shortHash(folder)}`);
    return server;
  } catch (error) {
    if (hasCode(error, ['EADDRINUSE', 'EACCES'])) return 'taken';
    throw error;
  }
}

/**
 * A socket file outlives its process, and taking over one well-known name would be a race: two that find it
 * dead could both replace it. So each candidate listens under a name never used again, and then asks the
 * others. At least the later of two candidates sees the other:
 *  - one that answers HELD has the folder;
 *  - of two undecided ones the lower name has precedence: the higher gives up, the lower waits for its answer.
 */
async function claimSocket(folder: string): Promise<Server | 'taken'> {
  const name = `lock-${randomBytes(6).toString('hex')}.sock`;
  const candidate = createCandidate();
  const place = await listenInside(candidate.server, folder, name);
  const others = readdirSync(place).filter(
    (other) => /^lock-[0-9a-f]{12}\.sock$/.test(other) && other !== name,
  );
  const answers = await Promise.all(others.map((other) => ask(join(place, other), other < name)));
  if (answers.includes('taken')) {
    candidate.withdraw();
    return 'taken';
  }
  // Gone if someone asked in the moment between bind and listen, and so took this candidate for dead.
  if (!existsSync(join(place, name))) {
    candidate.withdraw();
    return claimSocket(folder);
  }
  candidate.hold();
  return candidate.server;
}

const HELD = 'H';
/** Longest path of a Unix socket: 108 bytes with the final zero on Linux, 104 on macOS. */
const LONGEST_PATH = 100;
/** A holder that is stopped (SIGSTOP, a debugger) accepts and stays silent; it is alive all the same. */
const SILENT_AFTER_MS = 3_000;

/** Answers other processes: at once when decided, otherwise at the decision. */
function createCandidate(): { server: Server; hold(): void; withdraw(): void } {
  const waiting = new Set<Socket>();
  let isHeld = false;
  const server = createServer((socket) => {
    socket.on('error', () => socket.destroy());
    socket.once('close', () => waiting.delete(socket));
    if (isHeld) socket.end(HELD);
    else waiting.add(socket);
  });
  return {
    server,
    hold() {
      isHeld = true;
      for (const socket of waiting) socket.end(HELD);
    },
    withdraw() {
      server.close();
      for (const socket of waiting) socket.destroy();
    },
  };
}

/** 'free' if the other is dead or withdrew. A dead one's file is removed, as its name never comes back. */
async function ask(path: string, hasPrecedence: boolean): Promise<'free' | 'taken'> {
  const socket = connect(path);
  socket.setTimeout(SILENT_AFTER_MS, () => socket.destroy(new Error('silent')));
  try {
    await once(socket, 'connect');
    if (hasPrecedence) return 'taken';
    const [answer] = await Promise.race([once(socket, 'data'), once(socket, 'close')]);
    return Buffer.isBuffer(answer) ? 'taken' : 'free';
  } catch (error) {
    if (!hasCode(error, ['ECONNREFUSED', 'ENOENT', 'ECONNRESET', 'EPIPE'])) return 'taken';
    if (hasCode(error, ['ECONNREFUSED'])) rmSync(path, { force: true });
    return 'free';
  } finally {
    socket.destroy();
  }
}

/** Listens in the folder, or outside of it if its path is too long or its file system has no sockets. */
async function listenInside(server: Server, folder: string, name: string): Promise<string> {
  const stand = join(tmpdir(), `presign-${shortHash(folder)}`);
  const places = Buffer.byteLength(join(folder, name)) <= LONGEST_PATH ? [folder, stand] : [stand];
  for (const place of places) {
    try {
      mkdirSync(place, { recursive: true, mode: 0o700 });
      await listen(server, join(place, name));
      return place;
    } catch (error) {
      if (place === stand) throw error;
    }
  }
  return stand;
}

async function listen(server: Server, path: string): Promise<void> {
  server.listen(path);
  await once(server, 'listening');
  // Holding a folder is no reason for a process to stay alive.
  server.unref();
}

function shortHash(folder: string): string {
  return createHash('sha256').update(folder).digest('hex').slice(0, 16);
}

function hasCode(error: unknown, codes: string[]): boolean {
  return error instanceof Error && 'code' in error && codes.includes(String(error.code));
}
