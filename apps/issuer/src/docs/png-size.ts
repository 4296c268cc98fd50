/** The width and the height of a picture (PNG, third edition, §11.2.2: the first chunk is IHDR). */
export const pngSize = (bytes: Buffer): { readonly width: number; readonly height: number } => ({
  width: bytes.readUInt32BE(16),
  height: bytes.readUInt32BE(20),
});
