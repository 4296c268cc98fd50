import { crc32 } from 'node:zlib';

/** One message of `application/vnd.amazon.eventstream` (https://smithy.io/2.0/aws/amazon-eventstream.html). */
export function frame(headers: Readonly<Record<string, string>>, payload: string): Buffer {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => textHeader(name, value)));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + Buffer.byteLength(payload), 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const body = Buffer.concat([prelude, head, Buffer.from(payload)]);
  const checksum = Buffer.alloc(4);
  checksum.writeUInt32BE(crc32(body));
  return Buffer.concat([body, checksum]);
}

/** A message that carries an event of Bedrock. */
export const eventFrame = (name: string, payload: unknown): Buffer =>
  frame(
    { ':event-type': name, ':content-type': 'application/json', ':message-type': 'event' },
    JSON.stringify(payload),
  );

/** A header of type 7, a text. */
function textHeader(name: string, value: string): Buffer {
  const length = Buffer.alloc(2);
  length.writeUInt16BE(Buffer.byteLength(value));
  return Buffer.concat([
    Buffer.from([Buffer.byteLength(name)]),
    Buffer.from(name),
    Buffer.from([7]),
    length,
    Buffer.from(value),
  ]);
}
