// Archives whose bytes depend on the names and the bytes of their files alone. A file is [path, bytes] or [path, bytes, mode].
import { crc32, gzipSync } from 'node:zlib';

/** Stored, because the bytes that zlib writes differ between versions and machines. */
export function zip(files) {
  const locals = [];
  const central = [];
  let offset = 0;
  for (const [path, bytes] of files) {
    const name = Buffer.from(path);
    const [flags, stored, time, day] = [0x0800, 0, 0, 0x21];
    const common = [u16(20), u16(flags), u16(stored), u16(time), u16(day), u32(crc32(bytes))];
    const sizes = [u32(bytes.length), u32(bytes.length), u16(name.length), u16(0)];
    const local = Buffer.concat([u32(0x04034b50), ...common, ...sizes, name, bytes]);
    // Made on Unix: a file that all may read.
    const rest = [u16(0), u16(0), u16(0), u32(0o100644 * 0x10000), u32(offset), name];
    central.push(u32(0x02014b50), u16(0x0314), ...common, ...sizes, ...rest);
    locals.push(local);
    offset += local.length;
  }
  const directory = Buffer.concat(central);
  const count = u16(files.length);
  const end = [u32(0x06054b50), u16(0), u16(0), count, count, u32(directory.length), u32(offset), u16(0)];
  return Buffer.concat([...locals, directory, ...end]);
}

const u16 = (number) => Buffer.from(Uint16Array.of(number).buffer);
const u32 = (number) => Buffer.from(Uint32Array.of(number).buffer);

export function tarGz(files) {
  const blocks = files.flatMap(([path, bytes, mode = 0o644]) => [
    tarHeader(path, bytes.length, mode),
    bytes,
    Buffer.alloc(-bytes.length & 511),
  ]);
  const archive = gzipSync(Buffer.concat([...blocks, Buffer.alloc(1024)]), { level: 0 });
  // The operating system: unknown.
  archive[9] = 255;
  return archive;
}

/** POSIX ustar. */
function tarHeader(path, size, mode) {
  const header = Buffer.alloc(512);
  const octal = (number, digits) => number.toString(8).padStart(digits, '0');
  header.write(path, 0);
  header.write(octal(mode, 7), 100);
  header.write(octal(0, 7), 108);
  header.write(octal(0, 7), 116);
  header.write(octal(size, 11), 124);
  header.write(octal(315_532_800, 11), 136);
  header.write('        0', 148);
  header.write('ustar\u000000', 257);
  const sum = header.reduce((total, byte) => total + byte, 0);
  header.write(`${octal(sum, 6)}\0 `, 148);
  return header;
}
